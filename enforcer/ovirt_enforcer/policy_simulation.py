"""Lets all who migrate VMs by themselves act in turn on a snapshot, and names a loop if they make one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from ovirt_placement.answers.plans.plan import reason
from ovirt_placement.model import Cluster, Snapshot, Vm
from ovirt_placement.model.amounts import counted
from ovirt_placement.model.names import (
    Named,
    NamedGroup,
    host_name,
    named_cluster,
    named_groups,
    named_host,
    named_vm,
)
from ovirt_placement.model.record import Record
from ovirt_placement.planning.assignment.catalogue import StrategyName, strategy
from ovirt_placement.planning.deadline import NEVER, Deadline
from ovirt_placement.planning.planner import Frozen, make_plan
from ovirt_placement.planning.problem.build_problem import DEFAULT_OPTIONS, PlanOptions, Repair
from ovirt_placement.rules.affinity.host_groups import legacy_groups
from ovirt_placement.rules.catalogue import RULES, filters_in_force
from ovirt_placement.rules.constraints import Constraint
from ovirt_placement.rules.engine_enforcement import gains, tiers
from ovirt_placement.rules.engines_weights import ENGINES_WEIGHTS
from ovirt_placement.rules.ha import (
    BALANCE,
    OVER_UTILIZATION,
    balance_ha_vms,
    balance_vms,
    measure_of,
)
from ovirt_placement.rules.java import in_order
from ovirt_placement.rules.load import LoadLimits, balance_load, limits_of, overloaded
from ovirt_placement.rules.placement import SnapshotPlacement
from ovirt_placement.rules.ranks import order_hosts
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.verdict import BalanceRequest, Request, decimal_number, whole_number
from ovirt_placement.rules.world import World

_OURS = BALANCE.name
_EVEN = "OptimalForEvenDistribution"
#: Parameters of the engine's balances: even distribution has the first, saving power both.
_HIGH, _LOW = "HighUtilization", "LowUtilization"
#: After this many migrations it is given up.
MOST_MIGRATIONS: Final = 1000
#: A loop without some of the groups is searched for in this many rounds of it, and this many migrations more.
_ROUNDS, _MORE = 3, 20


class Actor(StrEnum):
    """Who migrates VMs on their own."""

    ENFORCER = "enforcer"  # this one, by its plans
    ENGINE = "engine"  # the engine's own affinity rules enforcement
    BALANCE = "balance"  # the balance of the cluster's scheduling policy


_NAMES: Final = {
    Actor.ENFORCER: "the enforcer",
    Actor.ENGINE: "the engine's affinity enforcement",
    Actor.BALANCE: "the balance",
}


class SimulationOutcome(StrEnum):
    """How a simulation ended."""

    SETTLED = "settled"  # no VM is migrated any more
    LOOP = "loop"  # it came back to where it had been before
    UNSETTLED = "not_settled"  # it was given up before either was seen


class SimulatedMigration(Record, frozen=True, omit_defaults=False):
    """One migration of a VM."""

    vm: Named
    from_: Named = msgspec.field(name="from")
    to: Named
    by: Actor
    #: The policy units whose rule asks for it, or the balance; none if it only makes room for the next.
    units: tuple[str, ...]
    #: Affinity groups, or legacy labels, that ask for it.
    groups: tuple[Named, ...]
    #: Why, as a sentence with names.
    because: str


class SimulatedLoop(Record, frozen=True, omit_defaults=False):
    """Migrations that bring every VM back to where it was, and so go on for ever."""

    migrations: tuple[SimulatedMigration, ...]
    #: The affinity groups, or legacy labels, that make it.
    groups: tuple[NamedGroup, ...]
    #: Whether each of `groups` is known to be needed for it; else there was no time to try all without.
    groups_needed: bool
    #: The policy units that ask for its migrations.
    units: tuple[str, ...]


class ClusterSimulation(Record, frozen=True, omit_defaults=False):
    """What all who migrate VMs of a cluster make of it."""

    cluster: Named
    outcome: SimulationOutcome
    #: How many VMs were migrated until it settled, was given up, or until the loop began.
    migrations: int
    #: Who took part.
    actors: tuple[Actor, ...]
    #: The balance that took part, by its unit.
    balance: str | None
    #: Whether it was given up since time ran out; else for the number of migrations.
    out_of_time: bool
    loop: SimulatedLoop | None


class Simulations(Record, frozen=True, omit_defaults=False):
    """Whether rules, scheduling policy and enforcer come to rest: `simulate-policy --json`."""

    format: Literal[1]
    clusters: tuple[ClusterSimulation, ...]


class AskedBy(NamedTuple):
    """A constraint with the rule that asks for it."""

    rule: Rule
    constraint: Constraint


class SimulatedCluster:
    """A cluster in which VMs are migrated: all that changes depends on where its VMs run."""

    def __init__(self, snapshot: Snapshot, cluster: str) -> None:
        self._world = World.with_load(snapshot)
        self._start = snapshot.vm_by_id
        self.id = cluster
        self._asked = [
            AskedBy(rule, constraint)
            for rule in RULES
            if rule.constraints is not None
            for constraint in rule.constraints(snapshot, cluster)
        ]

    @property
    def snapshot(self) -> Snapshot:
        return self._world.snapshot

    @property
    def policy(self) -> Cluster:
        return self.snapshot.cluster_by_id[self.id]

    @property
    def placement(self) -> frozenset[tuple[str, str | None]]:
        """The VMs that left their first host: equal if and only if each is on the same host."""
        return frozenset((vm.id, vm.host) for vm in self.snapshot.vms if vm.host != self._start[vm.id].host)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that are up, by their ids, as the engine asks about them (getVdsForClusterWithStatus)."""
        hosts = self.snapshot.hosts_of_cluster.get(self.id, ())
        return tuple(sorted(host.id for host in hosts if host.up))

    def violated(self, vms: Iterable[str] | None = None) -> list[AskedBy]:
        """What is violated now, of that which concerns any of some VMs where they are given."""
        placement, concerned = SnapshotPlacement(self.snapshot), None if vms is None else {*vms}
        return [
            one
            for one in self._asked
            if (concerned is None or not concerned.isdisjoint(one.constraint.vms))
            and not one.constraint.keeps(placement)
        ]

    def move(
        self,
        by: Actor,
        vms: Iterable[tuple[str, str]],
        target: str,
        units: tuple[str, ...],
        groups: Iterable[str],
        because: str,
    ) -> list[SimulatedMigration]:
        """Let VMs, given with their hosts, run on another host."""
        named, vms = self.snapshot, tuple(vms)
        to, asking = named_host(target, named), named_groups(groups, named)
        self._world = self._world.moved(tuple(vm for vm, _ in vms), target)
        return [
            SimulatedMigration(named_vm(vm, named), named_host(host, named), to, by, units, asking, because)
            for vm, host in vms
        ]


class Actors(NamedTuple):
    """Who takes part; the enforcer leaves the VMs in `frozen` alone, and repairs what the options say."""

    names: tuple[Actor, ...]
    frozen: Frozen
    options: PlanOptions

    def wanted(self, cluster: SimulatedCluster) -> frozenset[tuple[str, ...]]:
        """The violated rules that the enforcer would repair, by their groups."""
        return frozenset(
            one.constraint.groups
            for one in cluster.violated()
            if (Repair.HARD if one.constraint.hard else Repair.SOFT) in self.options.repair
        )

    def enforce(self, cluster: SimulatedCluster, deadline: Deadline) -> list[SimulatedMigration]:
        """Carry out a whole plan of the enforcer."""
        if not self.wanted(cluster) and not self.options.keys:
            return []
        plan = make_plan(
            cluster.snapshot,
            cluster.id,
            self.frozen,
            options=self.options,
            strategy=strategy(StrategyName.GREEDY),
            deadline=deadline,
            explained=False,
        )
        made: list[SimulatedMigration] = []
        for step in () if deadline.over else plan.steps:  # made in haste it would not be made again
            asking = [one for one in cluster.violated(step.vms) if {*one.constraint.groups} & {*step.groups}]
            because, vms = reason(step, cluster.snapshot), zip(step.vms, step.sources, strict=True)
            units = _units(asking, cluster.policy)
            made += cluster.move(Actor.ENFORCER, vms, step.target, units, step.groups, because)
        return made


def _enforce_as_engine(cluster: SimulatedCluster, deadline: Deadline) -> list[SimulatedMigration]:
    """One VM of a violated rule, the first in the engine's order that can go anywhere.

    Where the engine draws lots, the first by id. It does so while the cluster is being upgraded, too.
    """
    for vm, hard in engine_candidates(cluster):
        if deadline.over:
            return []
        target = engine_target(cluster.snapshot, vm, cluster.hosts, hard=hard)
        if target is not None:
            break
    else:
        return []
    snapshot, placement = cluster.snapshot, SnapshotPlacement(cluster.snapshot)
    asking = []
    for one in cluster.violated((vm,)):
        rule = one.constraint
        # Of a rule that gathers VMs the engine might move any of them.
        gathers = rule.positive and rule.family == "vm_affinity"
        if rule.hard is hard and vm in (rule.vms if gathers else rule.offenders(placement)):
            asking.append(one)
    groups = dict.fromkeys(group for one in asking for group in one.constraint.groups)
    reasons = []
    for one in asking:
        names = " and ".join(group.title for group in named_groups(one.constraint.groups, snapshot))
        verb = "is" if len(one.constraint.groups) == 1 else "are"
        reasons.append(f"{names} {verb} violated ({'hard' if hard else 'soft'}: {one.constraint.asks})")
    source = snapshot.vm_by_id[vm].host or ""
    units, because = _units(asking, cluster.policy), "; ".join(reasons)
    return cluster.move(Actor.ENGINE, [(vm, source)], target, units, groups, because)


def engine_candidates(cluster: SimulatedCluster) -> Iterator[tuple[str, bool]]:
    """The VMs that may move, in the engine's order, with whether a hard rule asks for it."""
    snapshot = cluster.snapshot
    violated = [one.constraint for one in cluster.violated()]
    movable = {vm for one in violated for vm in one.vms if snapshot.vm_by_id[vm].movable}
    seen: set[tuple[str, bool]] = set()
    for hard, tier in tiers(violated, SnapshotPlacement(snapshot), movable, as_engine=True):
        for vm in sorted(tier, key=in_order):
            known = snapshot.vm_by_id[vm]
            if (vm, hard) not in seen and vm in movable and known.status == "up" and known.host is not None:
                seen.add((vm, hard))
                yield vm, hard


def engine_target(snapshot: Snapshot, name: str, hosts: tuple[str, ...], *, hard: bool) -> str | None:
    """Where a VM is migrated to, if it is: for a soft rule only if the best of all hosts is a gain.

    The engine asks its own filters first whether any host is left: the others leave no more than they do.
    """
    vm = snapshot.vm_by_id[name]
    if not hard and not gains(snapshot, name, best_host(snapshot, vm, hosts), as_engine=True):
        return None
    return best_host(snapshot, vm, tuple(host for host in hosts if host != vm.host))


def best_host(snapshot: Snapshot, vm: Vm, hosts: tuple[str, ...]) -> str | None:
    """The host that the engine would choose of some, by the filters and weights of its cluster's policy.

    None if filters leave none. Of equals, what the engine finds first. Where nothing is known of a policy,
    the engine's own weights count as in the shipped ones.
    """
    cluster, left = snapshot.cluster_by_id[vm.cluster], hosts

    def asked(*, as_engine: bool) -> Request:
        """The engine moves one VM alone; its own units know that, ours cannot."""
        parameters = cluster.scheduling_properties
        return Request((vm.id,), left, parameters=parameters, as_engine=as_engine, explained=False)

    for rule in sorted(filters_in_force(cluster), key=lambda rule: not rule.depends_on.fixed):
        if left and rule.filter is not None and (not rule.ours or _takes_effect(rule, cluster)):
            verdicts = rule.filter(snapshot, asked(as_engine=rule.ours))
            left = tuple(verdict.host for verdict in verdicts if verdict.accepted)
    if len(left) < 2:
        return left[0] if left else None
    policy, known = cluster.scheduling_policy, bool(cluster.policy) or cluster.scheduling_policy is not None
    weights: dict[str | None, Mapping[str, int]] = {}
    factors: dict[str, int] = {}
    for one in ENGINES_WEIGHTS:
        factor = cluster.policy.get(one.name, 0) if known else one.factor
        if factor > 0:
            factors[one.unit], weights[one.unit] = factor, one.scores(snapshot, asked(as_engine=False))
    for rule in RULES:
        if rule.weight is not None and policy is not None and rule.enabled_in(cluster):
            factors[rule.name] = policy.weights[rule.name]
            ranks = rule.weight(snapshot, asked(as_engine=True))
            weights[rule.name] = {rank.host: rank.rank for rank in ranks}
    return order_hosts(left, weights, factors)[0].host


def _takes_effect(rule: Rule, cluster: Cluster) -> bool:
    """Whether a policy has our unit; where it is not known, a rule of ours that no policy must ask for."""
    return rule.enabled_in(cluster) if cluster.scheduling_policy is not None else not rule.on_request


def _units(asking: Iterable[AskedBy], cluster: Cluster) -> tuple[str, ...]:
    """The units that stand for rules: ours where the policy has it, else the engine's twin."""
    names = (
        rule.name if _takes_effect(rule, cluster) or not rule.twins else rule.twins[0] for rule, _ in asking
    )
    return tuple(dict.fromkeys(names))


def balance_unit(cluster: Cluster) -> str | None:
    """The balance of a cluster's policy; None if it has none, or one that is not known here.

    A state file need not name the engine's own: then one that its parameters give away counts, since a
    cluster whose policy evens out load has `HighUtilization` among its own.
    """
    named = cluster.scheduling_policy.balance if cluster.scheduling_policy is not None else None
    if named is None and _HIGH in cluster.scheduling_properties and _LOW not in cluster.scheduling_properties:
        return _EVEN
    return named if named in (_OURS, _EVEN) else None


def _balance(cluster: SimulatedCluster, deadline: Deadline) -> list[SimulatedMigration]:
    """The VM that the balance of the policy gives away, to the host that the engine then chooses.

    Hosts count as having been busy for long.
    """
    unit, snapshot, hosts = balance_unit(cluster.policy), cluster.snapshot, cluster.hosts
    if unit is None or deadline.over:
        return []
    parameters = cluster.policy.scheduling_properties
    if unit == _OURS:
        limits = limits_of(parameters)
        move = balance_vms(snapshot, BalanceRequest(hosts, parameters))
    else:
        limits = LoadLimits(
            high_utilization=whole_number(parameters, _HIGH, LoadLimits().high_utilization),
            max_free_memory_for_over_utilized=whole_number(parameters, "MaxFreeMemoryForOverUtilized", 0),
            min_free_memory_for_under_utilized=whole_number(parameters, "MinFreeMemoryForUnderUtilized", 0),
            vcpu_to_physical_cpu_ratio=decimal_number(parameters, "VCpuToPhysicalCpuRatio"),
        )
        move = balance_load(snapshot, cluster.id, hosts, limits, overloaded(snapshot, hosts, limits))
    if move is None:
        return []
    vm = snapshot.vm_by_id[move.vm]
    target = best_host(snapshot, vm, tuple(move.hosts))
    if target is None or vm.host is None:
        return []
    because = _balance_text(cluster, unit, vm, vm.host, limits)
    return cluster.move(Actor.BALANCE, [(vm.id, vm.host)], target, (unit,), (), because)


def _balance_text(cluster: SimulatedCluster, unit: str, vm: Vm, host: str, limits: LoadLimits) -> str:
    """Why a host gives a VM away."""
    parameters, name = cluster.policy.scheduling_properties, f"host {host_name(host, cluster.snapshot)}"
    if unit == _OURS:
        over = whole_number(parameters, "ha_balance_over_utilization", OVER_UTILIZATION)
        move = balance_ha_vms(cluster.snapshot, cluster.id, cluster.hosts, over, measure_of(parameters))
        if move is not None and move.vm == vm.id:
            return f"{name} has more than its share of highly available VMs"
    if host in overloaded(cluster.snapshot, cluster.hosts, limits):
        percent = cluster.snapshot.host_by_id[host].cpu_percent or 0
        return (
            f"{name} uses {percent:.0f} % of its CPU, and is overloaded from {limits.high_utilization} % on"
        )
    return f"{name} is short of memory or has too many virtual CPUs"


class Run(NamedTuple):
    """How it went."""

    outcome: SimulationOutcome
    #: Until it ended, or the loop began, and one round of the loop.
    migrations: tuple[SimulatedMigration, ...]
    loop: tuple[SimulatedMigration, ...]
    #: The state that all ended in; of a loop, the one that comes again, and the actor whose turn it is then.
    end: Snapshot
    next: Actor
    out_of_time: bool


def simulate(
    snapshot: Snapshot,
    cluster: str,
    frozen: Frozen = (),
    *,
    options: PlanOptions = DEFAULT_OPTIONS,
    deadline: Deadline = NEVER,
    most: int = MOST_MIGRATIONS,
) -> ClusterSimulation:
    """Let the enforcer, the engine's enforcement and the balance of the policy act in turn on a snapshot.

    VMs in `frozen` are left alone by the enforcer. The same snapshot comes to the same end, unless the
    deadline cuts it short. Where the engine draws lots, one draw is tried.
    """
    unit = balance_unit(snapshot.cluster_by_id[cluster])
    names = (Actor.ENFORCER, Actor.ENGINE, *((Actor.BALANCE,) if unit is not None else ()))
    actors = Actors(names, frozen, options)
    went = run(snapshot, cluster, actors, most, deadline)
    loop = None
    if went.outcome is SimulationOutcome.LOOP:
        groups = _needed_groups(went, cluster, actors, deadline)
        units = tuple(dict.fromkeys(unit for one in went.loop for unit in one.units))
        loop = SimulatedLoop(went.loop, named_groups(groups, snapshot), not deadline.over, units)
    return ClusterSimulation(
        cluster=named_cluster(cluster, snapshot),
        outcome=went.outcome,
        migrations=len(went.migrations),
        actors=names,
        balance=unit,
        out_of_time=went.out_of_time and went.outcome is SimulationOutcome.UNSETTLED,
        loop=loop,
    )


def run(
    snapshot: Snapshot,
    cluster: str,
    actors: Actors,
    most: int,
    deadline: Deadline,
    first: Actor | None = None,
) -> Run:
    """Let all act, `first` before the others, until they settle, go in circles, or migrated this many VMs."""
    simulated = SimulatedCluster(_arrived(snapshot, cluster), cluster)
    acts = {Actor.ENFORCER: actors.enforce, Actor.ENGINE: _enforce_as_engine, Actor.BALANCE: _balance}
    names, turn = actors.names, 0 if first is None else actors.names.index(first)
    made: list[SimulatedMigration] = []
    resting: set[Actor] = set()
    #: How many migrations there had been, by where all were and whose turn it was.
    seen: dict[tuple[int, frozenset[tuple[str, str | None]]], int] = {}

    def ended(outcome: SimulationOutcome, begins: int | None = None, length: int = 0) -> Run:
        before, loop = made[:begins], () if begins is None else made[begins : begins + length]
        return Run(outcome, tuple(before), tuple(loop), simulated.snapshot, names[turn], deadline.over)

    while len(resting) < len(names):
        if deadline.over or len(made) >= most:
            return ended(SimulationOutcome.UNSETTLED)
        begins = seen.setdefault((turn, simulated.placement), len(made))
        if begins < len(made):
            length = len(made) - begins
            while begins > 0 and made[begins - 1] == made[begins - 1 + length]:
                begins -= 1  # it began before it came to where it had been
            return ended(SimulationOutcome.LOOP, begins, length)
        moved = acts[names[turn]](simulated, deadline)
        made += moved
        resting = set() if moved else resting | {names[turn]}
        turn = (turn + 1) % len(names)
    return ended(SimulationOutcome.UNSETTLED if deadline.over else SimulationOutcome.SETTLED)


def _arrived(snapshot: Snapshot, cluster: str) -> Snapshot:
    """The cluster once what is on its way has arrived, as far as it is known where to."""
    going = {
        vm.id: snapshot.pending_hosts[vm.id][-1]
        for vm in snapshot.vms
        if vm.cluster == cluster and vm.host is not None and vm.id in snapshot.pending_hosts
    }
    there = {vm: host for vm, host in going.items() if host in snapshot.host_by_id}
    return World(snapshot).arrived(there, source_freed=True).snapshot if there else snapshot


def _needed_groups(loop: Run, cluster: str, actors: Actors, deadline: Deadline) -> list[str]:
    """Groups that make the same VMs go round, and no longer do without any one of them.

    There may be more than that where the deadline is over.
    """
    vms, most = {one.vm.id for one in loop.loop}, _ROUNDS * len(loop.loop) + _MORE

    def goes_round(groups: Collection[str]) -> bool:
        found = run(_with_only(loop.end, cluster, groups), cluster, actors, most, deadline, loop.next)
        return vms <= {one.vm.id for one in found.loop}

    groups = (*loop.end.affinity_groups, *legacy_groups(loop.end))
    members = {
        group.id: loop.end.group_vms.get(group.id, group.vms) for group in groups if group.cluster == cluster
    }
    # Few groups are tied to these VMs by shared members, and they alone are likely to do it.
    tied, reached = set[str](), vms
    while more := {group for group in members if not reached.isdisjoint(members[group])} - tied:
        tied |= more
        reached = reached.union(*(members[group] for group in more))
    needed = sorted(tied if goes_round(tied) else members)
    for group in tuple(needed):
        without = [one for one in needed if one != group]
        if goes_round(without):
            needed = without
    return needed


def _with_only(snapshot: Snapshot, cluster: str, groups: Collection[str]) -> Snapshot:
    """The state with only these groups and legacy labels in force in a cluster."""
    kept = (group for group in snapshot.affinity_groups if group.cluster != cluster or group.id in groups)
    labels = (
        replace(label, implicit=label.implicit and label.id in groups) for label in snapshot.affinity_labels
    )
    return replace(snapshot, affinity_groups=tuple(kept), affinity_labels=tuple(labels))


def simulation_text(simulation: ClusterSimulation) -> str:
    """A simulation in lines: how it ended, and of a loop who moves which VM for what, and what makes it."""
    actors = [_NAMES[actor] for actor in simulation.actors if actor is not Actor.BALANCE]
    taking_part = " and ".join([*actors, simulation.balance or "no balance that is known"])
    after, loop = f"after {counted(simulation.migrations, 'migration')}", simulation.loop
    if loop is not None:
        ending = f"a LOOP: {after} come {counted(len(loop.migrations), 'migration')} again and again."
    elif simulation.outcome is SimulationOutcome.SETTLED:
        ending = f"settles {after}." if simulation.migrations else "no VM is migrated."
    else:
        ending = f"not settled {after}; {'there was no more time' if simulation.out_of_time else 'given up'}."
    lines = [f"Cluster {simulation.cluster.name} ({taking_part}): {ending}"]
    return "\n".join([*lines, *(_loop_text(loop) if loop is not None else ())])


def _loop_text(loop: SimulatedLoop) -> Iterator[str]:
    for number, one in enumerate(loop.migrations, 1):
        units = f" ({', '.join(one.units)})" if one.units else ""
        migration = f"{one.vm.name} from {one.from_.name} to {one.to.name}"
        yield f"  {number}. {migration} by {_NAMES[one.by]}{units}: {one.because}"
    yield f"  Made by: {', '.join([*(group.title for group in loop.groups), *loop.units])}"
    if not loop.groups_needed:
        yield "  There was no time to see which of these groups it needs."
