"""Poses the problem of one cluster: asks the catalogue which rules there are, and what of them is fixed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.planning.legality import ProblemTargets, filters_of
from ovirt_placement.planning.problem.problem import HARD, Goal, Problem
from ovirt_placement.rules import catalogue
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.elements.constraints import Allowed, AtLeast, AtMost, Constraint, Even, Same, Sum
from ovirt_placement.rules.elements.cpus import cores_of
from ovirt_placement.rules.elements.memory import required_mb
from ovirt_placement.rules.elements.placement import SnapshotPlacement, why_immovable
from ovirt_placement.rules.elements.rule import Rule
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
#: Of such a placement rule, less above its limits is better than more: none draws VMs to each other.
_LIMITS = Sum | AtMost | Even | AtLeast | Allowed
NOTHING_REFUSED: frozenset[tuple[str, str]] = frozenset()
DEFAULT_OPTIONS = PlanOptions()


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
    vms = [vm for vm in snapshot.vms if vm.cluster == cluster and _place(snapshot, vm) is not None]
    goals = tuple(_goals(snapshot, cluster, options))
    concerned = {vm for goal in goals for vm in goal.vms}
    running = {vm.id for vm in snapshot.vms if _place(snapshot, vm) is not None}
    filters = filters_of(snapshot, cluster)
    direct = {vm: _joined(snapshot, filters, vm) & running for vm in concerned}
    peers = {vm: found for vm, found in direct.items() if found}
    placed = {vm.id for vm in vms}.union(*peers.values())
    cores = {host.id: 100.0 * cores_of(host, snapshot.cluster_by_id[cluster]) for host in hosts}
    used_cpu = {
        host.id: cores[host.id] * host.cpu_percent / 100 for host in hosts if host.cpu_percent is not None
    }
    targets = ProblemTargets(
        snapshot,
        cluster,
        tuple(host.id for host in hosts if host.id not in options.closed),
        frozenset(
            vm.id for vm in vms if not still and vm.id not in frozen and why_immovable(snapshot, vm) is None
        ),
        frozenset(refused),
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
        where={vm.id: place for vm in snapshot.vms if vm.id in placed and (place := _place(snapshot, vm))},
        pending={vm: snapshot.pending_hosts[vm] for vm in placed & snapshot.pending_hosts.keys()},
        targets=targets,
        goals=goals,
        goals_of=_by_vm(goals),
        peers=peers,
        refused=frozenset(refused),
        guessed=targets.guessed,
        failover=frozenset(host.id for host in hosts if host.failover),
    )


def _joined(snapshot: Snapshot, filters: Iterable[Rule], vm: str) -> frozenset[str]:
    """The peers that filters have a VM join."""
    return frozenset[str]().union(*(rule.depends_on.joins(snapshot, vm) for rule in filters))


def _place(snapshot: Snapshot, vm: Vm) -> str | None:
    """The host that a VM runs on, or that it is about to start on."""
    return vm.host or next(iter(snapshot.pending_hosts.get(vm.id, ())), None)


def _goals(snapshot: Snapshot, cluster: str, options: PlanOptions) -> Iterator[Goal]:
    """Rules with running members; a rule between VMs needs two of them."""
    placement = SnapshotPlacement(snapshot)
    rules = (*catalogue.constraints(snapshot, cluster), *options.constraints)
    trimmed = list(_trimmed(rules, placement))
    if options.keys:
        trimmed.extend(catalogue.momentary_constraints(snapshot, cluster))
    priorities = sorted({one.priority for one in trimmed if not one.hard}, reverse=True)
    for number, constraint in enumerate(trimmed):
        form, satisfied = constraint.form, constraint.keeps(placement)
        asked = (Repair.HARD if constraint.hard else Repair.SOFT) in options.repair
        wanted = asked and options.spared.isdisjoint(constraint.groups)
        yield Goal(
            number=number,
            constraint=constraint,
            form=form,
            level=HARD if constraint.hard else 1 + priorities.index(constraint.priority),
            wanted=wanted,
            satisfied=satisfied,
            surplus=0 if satisfied else constraint.surplus(placement),
            # One that may be violated on the way might be so in the end, for another: what that gains must
            # not be taken back by the next plan.
            partly=constraint.hard
            and wanted
            and not (satisfied and constraint.binding)
            and _may_hold_in_part(constraint, options),
        )


def _may_hold_in_part(constraint: Constraint, options: PlanOptions) -> bool:
    """Whether less of it violated is better; the repair of affinity groups in part must be asked for."""
    if constraint.engine_judges:
        return constraint.form == _APART and Repair.PARTLY in options.repair
    return isinstance(constraint.form, _LIMITS)


def _trimmed(constraints: Iterable[Constraint], placement: SnapshotPlacement) -> Iterator[Constraint]:
    for constraint in constraints:
        running = tuple(vm for vm, _ in constraint.running(placement))
        if len(running) > (isinstance(constraint.form, Same | AtMost)):
            yield replace(constraint, vms=running)


def _by_vm(goals: Iterable[Goal]) -> Mapping[str, tuple[Goal, ...]]:
    found: defaultdict[str, list[Goal]] = defaultdict(list)
    for goal in goals:
        for vm in goal.vms:
            found[vm].append(goal)
    return {vm: tuple(its) for vm, its in found.items()}
