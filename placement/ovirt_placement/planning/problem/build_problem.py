"""Poses the problem of one cluster: asks the catalogue which rules there are, and what of them is fixed."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.planning.plan import Step
from ovirt_placement.planning.problem.problem import HARD, Goal, Problem
from ovirt_placement.rules import catalogue
from ovirt_placement.rules.catalogue import filters_in_force
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.elements.placement import SnapshotPlacement, why_immovable
from ovirt_placement.rules.elements.resources import (
    all_take_what_they_need,
    cores_of,
    physical_mb,
    physical_room,
    required_mb,
)
from ovirt_placement.rules.elements.rule import AtMost, Constraint, Limit, Rule, Same, accepted_hosts
from ovirt_placement.rules.elements.verdict import Reason, Request
from ovirt_placement.rules.failover.outcomes import Domain


class Repair(StrEnum):
    """Which rules a plan repairs; the others it only does not violate."""

    HARD = "hard"
    SOFT = "soft"
    #: Hard negative groups that cannot be satisfied are spread as far as they can be. What placement rules
    #: limit is brought as near to its limits as it can be in any case.
    PARTLY = "partly"


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What the configuration asks of a plan."""

    repair: frozenset[Repair] = frozenset({Repair.HARD})
    #: Shares of each target that are to stay free, 0 to 1.
    memory_headroom: float = 0.0
    cpu_headroom: float = 0.0
    #: Groups and legacy labels that are not to be repaired for now, by id.
    spared: frozenset[str] = frozenset()
    #: Whether soft rules count: then none that is satisfied is violated if there is another way.
    soft: bool = True
    #: Hosts that nothing is to be moved to for now, by id.
    closed: frozenset[str] = frozenset()
    #: Whether a VM whose placement keys refuse the host that it runs on is to be moved, as by a hard rule.
    keys: bool = False
    #: What is asked in addition to the rules of the cluster, as that hosts are to be empty.
    constraints: tuple[Constraint, ...] = ()
    #: Whether migrations are planned that restore a violated HA reservation, and the failure
    #: domains that are to be survived besides hosts.
    reserve: bool = False
    domains: tuple[Domain, ...] = ()


#: Of such a group that cannot be satisfied, fewer pairs that share a host are better than more.
_APART = AtMost(most=1)
NOTHING_REFUSED: frozenset[tuple[str, str]] = frozenset()
DEFAULT_OPTIONS = PlanOptions()


def asking(
    snapshot: Snapshot, cluster: str, constraints: Iterable[Constraint], closed: Iterable[str] = ()
) -> PlanOptions:
    """What is asked of a plan for these constraints alone, that repairs no rule of the cluster."""
    violated = catalogue.find_violations(snapshot, cluster)
    return PlanOptions(
        spared=frozenset(group for one in violated for group in one.groups),
        closed=frozenset(closed),
        constraints=tuple(constraints),
    )


def pose(
    snapshot: Snapshot,
    cluster: str,
    frozen: Collection[str] = (),
    refused: Collection[tuple[str, str]] = NOTHING_REFUSED,
    options: PlanOptions = DEFAULT_OPTIONS,
) -> Problem:
    """The problem of one cluster.

    VMs in `frozen` are to be left where they are; `refused` are VMs with hosts that a rule or the engine has
    refused already. Nothing is moved while something is not known yet that could forbid it.
    """
    still = doubt(snapshot, cluster)
    hosts = sorted(
        (host for host in snapshot.hosts_of_cluster.get(cluster, ()) if host.up),
        key=lambda host: (host.failover, -host.free_mb, host.id),
    )
    running = {vm.id: place for vm in snapshot.vms if (place := _place(snapshot, vm)) is not None}
    vms = [vm for vm in snapshot.vms if vm.cluster == cluster and vm.id in running]
    goals = tuple(_goals(snapshot, cluster, options))
    goals_of: defaultdict[str, list[Goal]] = defaultdict(list)
    for goal in goals:
        for name in goal.vms:
            goals_of[name].append(goal)
    joins = [rule.depends_on.joins for rule in filters_of(snapshot, cluster)]
    peers = {vm: frozenset[str]().union(*(one(snapshot, vm) for one in joins)) for vm in goals_of}
    peers = {vm: found for vm, its in peers.items() if (found := its & running.keys())}
    placed = {vm.id for vm in vms}.union(*peers.values())
    cores = {host.id: 100.0 * cores_of(host, snapshot.cluster_by_id[cluster]) for host in hosts}
    used_cpu = {
        host.id: cores[host.id] * host.cpu_percent / 100 for host in hosts if host.cpu_percent is not None
    }
    able = (vm for vm in vms if not still and vm.id not in frozen)
    targets = ProblemTargets(
        snapshot,
        cluster,
        tuple(host.id for host in hosts if host.id not in options.closed),
        frozenset(vm.id for vm in able if why_immovable(snapshot, vm) is None),
        refused,
    )
    return Problem(
        cluster=cluster,
        hosts=tuple(host.id for host in hosts),
        free_mb={host.id: host.free_mb for host in hosts},
        spare_mb={host.id: host.free_mb - round(host.memory_mb * options.memory_headroom) for host in hosts},
        spare_cpu={host: cores[host] * (1 - options.cpu_headroom) - used for host, used in used_cpu.items()},
        size_mb={host.id: host.memory_mb for host in hosts},
        size_cpu=cores,
        used_cpu=used_cpu,
        memory_mb={vm.id: required_mb(vm) for vm in vms},
        cpu={vm.id: vm.vcpus * (vm.usage_cpu_percent or 0.0) for vm in vms},
        where={vm: place for vm, place in running.items() if vm in placed},
        pending={vm: snapshot.pending_hosts[vm] for vm in placed & snapshot.pending_hosts.keys()},
        targets=targets,
        goals=goals,
        goals_of={vm: tuple(its) for vm, its in goals_of.items()},
        peers=peers,
        refused=frozenset(refused),
        guessed=targets.guessed,
        failover=frozenset(host.id for host in hosts if host.failover),
    )


def _place(snapshot: Snapshot, vm: Vm) -> str | None:
    """The host that a VM runs on, or that it is about to start on."""
    return vm.host or next(iter(snapshot.pending_hosts.get(vm.id, ())), None)


def _goals(snapshot: Snapshot, cluster: str, options: PlanOptions) -> Iterator[Goal]:
    """Rules with running members; a rule between VMs needs two of them."""
    placement = SnapshotPlacement(snapshot)
    rules = (*catalogue.constraints(snapshot, cluster), *options.constraints)
    trimmed = list(_trimmed((one for one in rules if one.hard or options.soft), placement))
    if options.keys:
        trimmed.extend(catalogue.momentary_constraints(snapshot, cluster))
    priorities = sorted({one.priority for one in trimmed if not one.hard}, reverse=True)
    for number, constraint in enumerate(trimmed):
        satisfied = constraint.keeps(placement)
        asked = (Repair.HARD if constraint.hard else Repair.SOFT) in options.repair
        wanted = asked and options.spared.isdisjoint(constraint.groups)
        # The repair of affinity groups in part must be asked for.
        partial = isinstance(constraint.form, Limit)
        if constraint.engine_judges:
            partial = constraint.form == _APART and Repair.PARTLY in options.repair
        yield Goal(
            number=number,
            constraint=constraint,
            form=constraint.form,
            level=HARD if constraint.hard else 1 + priorities.index(constraint.priority),
            wanted=wanted,
            satisfied=satisfied,
            surplus=0 if satisfied else constraint.surplus(placement),
            # One that may be violated on the way might be so in the end, for another: what that gains must
            # not be taken back by the next plan.
            partly=constraint.hard and wanted and partial and not (satisfied and constraint.binding),
        )


def _trimmed(constraints: Iterable[Constraint], placement: SnapshotPlacement) -> Iterator[Constraint]:
    for constraint in constraints:
        running = tuple(vm for vm, _ in constraint.running(placement))
        if len(running) > (isinstance(constraint.form, Same | AtMost)):
            yield replace(constraint, vms=running)


class ProblemTargets(dict[str, frozenset[str]]):
    """Hosts by VM, found when asked for: none of a VM that may not move; what was refused is left out.

    Of a VM with a list of hosts, only these: the engine would let one that may be migrated go elsewhere, but
    the author of the list does not want it there.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        cluster: str,
        hosts: tuple[str, ...],
        movable: frozenset[str],
        refused: Collection[tuple[str, str]],
    ) -> None:
        super().__init__()
        self._snapshot = snapshot
        self._cluster = cluster
        self._hosts = hosts
        self._every = frozenset(hosts)
        self._movable = movable
        self._refused: defaultdict[str, set[str]] = defaultdict(set)
        for vm, host in refused:
            self._refused[vm].add(host)
        rules = [rule for rule in filters_of(snapshot, cluster) if not rule.depends_on.computed]
        self._fixed = [rule for rule in rules if rule.depends_on.fixed_in(snapshot, cluster)]
        # Their answers may change as other VMs move, and no goal describes how.
        self._swayed = [rule for rule in rules if rule not in self._fixed and rule.constraints is None]
        #: Memory and swap together that are physically free, of each host of which that is known; most have
        #: more than any VM needs.
        rooms = ((physical_room(snapshot, snapshot.host_by_id[host]), host) for host in hosts)
        self._rooms = sorted(
            (room.memory_mb + room.swap_mb, host) for room, host in rooms if room is not None
        )
        vms = [snapshot.vm_by_id[vm] for vm in movable]
        most_mb = max(map(physical_mb, vms), default=0)
        short = bool(self._rooms and self._rooms[0][0] < most_mb)
        self.guessed = bool(self._swayed) or short or not all_take_what_they_need(snapshot, hosts, vms)
        self._passed: dict[tuple[Rule, Hashable, frozenset[str]], frozenset[str]] = {}

    def __missing__(self, vm: str) -> frozenset[str]:
        found = self[vm] = self._found(vm) if vm in self._movable else frozenset()
        return found

    def _found(self, vm: str) -> frozenset[str]:
        known = self._snapshot.vm_by_id[vm]
        passed = self._every
        for rule in (*self._fixed, *self._swayed):
            passed = self._passed_by(rule, vm, passed)
        # A list of hosts to start on does not bind a VM that may migrate; no plan takes it off them, though.
        if listed := known.pinned_hosts:
            passed = passed.intersection(listed)
        # No plan reckons with what others free physically.
        too_full = self._rooms[: bisect_left(self._rooms, (physical_mb(known), ""))]
        closed = {host for _, host in too_full}.union(self._refused.get(vm, ()))
        # Most VMs lack none, and share one set.
        return passed if passed.isdisjoint(closed) else passed - closed

    def _passed_by(self, rule: Rule, vm: str, hosts: frozenset[str]) -> frozenset[str]:
        """Those of some hosts that a rule lets a VM go to; VMs are alike more often than not."""
        alike = rule.depends_on.alike
        if rule not in self._fixed or alike is None:
            return self._asked(rule, vm, hosts)
        key = (rule, alike(self._snapshot, vm), hosts)
        if key not in self._passed:
            self._passed[key] = self._asked(rule, vm, hosts)
        return self._passed[key]

    def _asked(self, rule: Rule, vm: str, hosts: frozenset[str]) -> frozenset[str]:
        candidates = tuple(host for host in self._hosts if host in hosts)
        request = request_for(self._snapshot, self._cluster, (vm,), candidates)
        return frozenset(accepted_hosts(self._snapshot, (rule,), request))


def filters_of(snapshot: Snapshot, cluster: str) -> tuple[Rule, ...]:
    """All filters that a migration within a cluster must pass."""
    return filters_in_force(snapshot.cluster_by_id[cluster])


def request_for(snapshot: Snapshot, cluster: str, vms: tuple[str, ...], hosts: tuple[str, ...]) -> Request:
    """The question to a filter: unlike the engine, a plan takes no VM away from its peers."""
    return Request(vms, hosts, parameters=snapshot.cluster_by_id[cluster].scheduling_properties)


def vetoes(
    snapshot: Snapshot, cluster: str, vms: tuple[str, ...], host: str
) -> Iterator[tuple[Rule, Reason]]:
    """Why VMs may not go to a host together, and which rule says so; the engine's own filters come last."""
    request = request_for(snapshot, cluster, vms, (host,))
    for rule in filters_of(snapshot, cluster):
        for verdict in rule.filter(snapshot, request) if rule.filter is not None else ():
            yield from ((rule, reason) for reason in verdict.reasons if reason.kind.veto)


def legal(snapshot: Snapshot, step: Step) -> bool:
    """Whether the rules, capacity and the state of VMs and target let a step be taken now."""
    target = snapshot.host_by_id.get(step.target)
    if target is None:
        return False
    for vm_id, source in zip(step.vms, step.sources, strict=True):
        vm = snapshot.vm_by_id.get(vm_id)
        if vm is None or vm.host != source or vm.cluster != target.cluster or not _movable(vm):
            return False
    return next(vetoes(snapshot, target.cluster, step.vms, step.target), None) is None


def _movable(vm: Vm) -> bool:
    return vm.movable and vm.status == "up"
