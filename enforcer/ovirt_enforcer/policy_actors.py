"""Who migrates VMs of a cluster on their own, and what each does in its turn."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from ovirt_placement.answers.plans import reason
from ovirt_placement.model import Cluster, Snapshot, Vm
from ovirt_placement.model.names import Named, group_names, host_name, named_groups, named_host, named_vm
from ovirt_placement.model.record import Record, Worded
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.planning.steps import Frozen
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.rules.catalogue import RULES, filters_in_force
from ovirt_placement.rules.elements.placement import SnapshotPlacement, World
from ovirt_placement.rules.elements.ranks import in_order, order_hosts
from ovirt_placement.rules.elements.rule import Constraint, Rule, accepted_hosts
from ovirt_placement.rules.elements.verdict import BalanceRequest, Request, decimal_number, whole_number
from ovirt_placement.rules.engine_affinity import gains, tiers
from ovirt_placement.rules.engine_weights import ENGINES_WEIGHTS
from ovirt_placement.rules.failover.balance import BALANCE, balance_vms
from ovirt_placement.rules.ha import OVER_UTILIZATION, measure_of, measure_spread
from ovirt_placement.rules.load import LoadLimits, balance_load, limits_of, overloaded

_OURS = BALANCE.name
_EVEN = "OptimalForEvenDistribution"
#: Parameters of the engine's balances: even distribution has the first, saving power both.
_HIGH, _LOW = "HighUtilization", "LowUtilization"


class Actor(Worded):
    """Who migrates VMs on their own."""

    ENFORCER = "enforcer", "the enforcer"  # this one, by its plans
    ENGINE = "engine", "the engine's affinity enforcement"
    BALANCE = "balance", "the balance"  # of the cluster's scheduling policy


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


class AskedBy(NamedTuple):
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
        placement, concerned = SnapshotPlacement(self.snapshot), None if vms is None else {*vms}
        return [
            asked
            for asked in self._asked
            if (concerned is None or not concerned.isdisjoint(asked.constraint.vms))
            and not asked.constraint.keeps(placement)
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

    def enforce(self, cluster: SimulatedCluster, deadline: Deadline) -> list[SimulatedMigration]:
        violated = {Repair.HARD if one.constraint.hard else Repair.SOFT for one in cluster.violated()}
        if violated.isdisjoint(self.options.repair) and not self.options.keys:
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


def enforce_as_engine(cluster: SimulatedCluster, deadline: Deadline) -> list[SimulatedMigration]:
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
    for asked in cluster.violated((vm,)):
        rule = asked.constraint
        # Of a rule that gathers VMs the engine might move any of them.
        gathers = rule.positive and rule.family == "vm_affinity"
        if rule.hard is hard and vm in (rule.vms if gathers else rule.offenders(placement)):
            asking.append(asked)
    groups = dict.fromkeys(group for one in asking for group in one.constraint.groups)
    reasons = []
    for asked in asking:
        names = group_names(asked.constraint.groups, snapshot)
        verb = "is" if len(asked.constraint.groups) == 1 else "are"
        reasons.append(f"{names} {verb} violated ({'hard' if hard else 'soft'}: {asked.constraint.asks})")
    source = snapshot.vm_by_id[vm].host or ""
    units, because = _units(asking, cluster.policy), "; ".join(reasons)
    return cluster.move(Actor.ENGINE, [(vm, source)], target, units, groups, because)


def engine_candidates(cluster: SimulatedCluster) -> Iterator[tuple[str, bool]]:
    """The VMs that may move, in the engine's order, with whether a hard rule asks for it."""
    snapshot = cluster.snapshot
    violated = [one.constraint for one in cluster.violated()]
    movable = {vm for one in violated for vm in one.vms if snapshot.vm_by_id[vm].movable}
    seen: set[tuple[str, bool]] = set()
    for hard, tier in tiers(violated, SnapshotPlacement(snapshot), movable):
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
    if not hard and not gains(snapshot, name, best_host(snapshot, vm, hosts)):
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
        if not rule.ours or _takes_effect(rule, cluster):
            left = accepted_hosts(snapshot, (rule,), asked(as_engine=rule.ours))
    if len(left) < 2:
        return left[0] if left else None
    policy, known = cluster.scheduling_policy, bool(cluster.policy) or cluster.scheduling_policy is not None
    weights: dict[str | None, Mapping[str, int]] = {}
    factors: dict[str, int] = {}
    for weight in ENGINES_WEIGHTS:
        factor = cluster.policy.get(weight.name, 0) if known else weight.factor
        if factor > 0:
            factors[weight.unit] = factor
            weights[weight.unit] = weight.scores(snapshot, asked(as_engine=False))
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


def measured_by(cluster: Cluster) -> bool:
    """Whether its balance is the engine's own, which goes by CPU use that no rule of ours need ask for."""
    return balance_unit(cluster) == _EVEN


def unmeasured(snapshot: Snapshot, cluster: str) -> str:
    """Why the engine's own balance cannot be simulated, in words; empty if it can, or takes no part."""
    if not measured_by(snapshot.cluster_by_id[cluster]):
        return ""
    hosts = snapshot.hosts_of_cluster.get(cluster, ())
    mine = (vm for vm in snapshot.vms if vm.cluster == cluster and vm.host)
    names = [host.name for host in hosts if host.up and host.cpu_percent is None]
    names += [vm.name for vm in mine if vm.movable and vm.usage_cpu_percent is None]
    if not names:
        return ""
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"the CPU use of {names[0]}{others} is not known, by which {_EVEN} goes"


def balance(cluster: SimulatedCluster, deadline: Deadline) -> list[SimulatedMigration]:
    """The VM that the balance gives away, to the host that the engine chooses."""
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
    parameters, name = cluster.policy.scheduling_properties, f"host {host_name(host, cluster.snapshot)}"
    if unit == _OURS and vm.ha and cluster.policy.ha_reservation:
        over = whole_number(parameters, "ha_balance_over_utilization", OVER_UTILIZATION)
        measure = measure_of(parameters)
        if measure_spread(cluster.snapshot, cluster.id, cluster.hosts, over, measure).too_many(host):
            return f"{name} has more than its share of highly available VMs"
    if host in overloaded(cluster.snapshot, cluster.hosts, limits):
        percent = cluster.snapshot.host_by_id[host].cpu_percent or 0
        return (
            f"{name} uses {percent:.0f} % of its CPU, and is overloaded from {limits.high_utilization} % on"
        )
    return f"{name} is short of memory or has too many virtual CPUs"
