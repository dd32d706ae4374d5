"""Poses the problem of one cluster: asks the catalogue which rules there are, and what of them is fixed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_enforcer.planning.legality import filters_of, request_for, why_immovable
from ovirt_enforcer.planning.posed import Group, Problem
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules import catalogue
from ovirt_placement.rules.affinity.apart import Apart
from ovirt_placement.rules.affinity.together import Together
from ovirt_placement.rules.built_in import memory, vm_affinity_groups
from ovirt_placement.rules.constraint import Constraint
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.standing import SnapshotStanding

#: What a search asks anew of every standing: room, and the peers that the engine's own filter looks at.
_SEARCHED = (memory.RULE, vm_affinity_groups.RULE)

NOTHING_REFUSED: frozenset[tuple[str, str]] = frozenset()


def mends(constraint: Constraint) -> bool:
    """What the enforcer sees to: hard rules between VMs."""
    return constraint.hard and constraint.family == Together.family


class _Filters(NamedTuple):
    """The filters that are asked before a search."""

    #: Their answers stay as they are, whatever moves.
    fixed: tuple[Rule, ...]
    #: Their answers may change as other VMs move, and no constraint tells the search how.
    swayed: tuple[Rule, ...]


def pose(
    snapshot: Snapshot,
    cluster: str,
    held: Collection[str] = (),
    refused: Collection[tuple[str, str]] = NOTHING_REFUSED,
) -> Problem:
    """The problem of one cluster.

    VMs in `held` are to be left where they are; `refused` are VMs with hosts that some rule has refused to a
    plan already.
    """
    hosts = sorted(
        (host for host in snapshot.hosts_of_cluster.get(cluster, ()) if host.up),
        key=lambda host: (host.failover, -host.free_mb, host.id),
    )
    vms = [vm for vm in snapshot.vms if vm.cluster == cluster and _place(snapshot, vm) is not None]
    here = frozenset(vm.id for vm in vms)
    constraints = [one for one in catalogue.constraints(snapshot, cluster) if one.hard]
    filters = _filters(snapshot, cluster)
    peers = {vm: vm_affinity_groups.direct_peers(snapshot, vm) for vm in here}
    placed = here.union(*peers.values())
    return Problem(
        hosts=tuple(host.id for host in hosts),
        free_mb={host.id: host.free_mb for host in hosts},
        memory_mb={vm.id: vm.memory_mb for vm in vms},
        where={vm.id: place for vm in snapshot.vms if vm.id in placed and (place := _place(snapshot, vm))},
        pending={vm: snapshot.pending_hosts[vm] for vm in placed & snapshot.pending_hosts.keys()},
        allowed={
            vm.id: frozenset() if vm.id in held else _allowed(snapshot, vm, hosts, filters, refused)
            for vm in vms
        },
        mended=tuple(_groups(snapshot, constraints)),
        constraints=_by_vm(here, constraints),
        peers=peers,
        all_peers=_companions(here, constraints, Together),
        rivals=_companions(here, constraints, Apart),
        guessed=bool(filters.swayed) or bool(refused),
    )


def _place(snapshot: Snapshot, vm: Vm) -> str | None:
    """The host that a VM runs on, or that it is about to start on."""
    return vm.host or next(iter(snapshot.pending_hosts.get(vm.id, ())), None)


def _filters(snapshot: Snapshot, cluster: str) -> _Filters:
    rules = [rule for rule in filters_of(snapshot, cluster) if rule not in _SEARCHED]
    return _Filters(
        tuple(rule for rule in rules if rule.fixed),
        tuple(rule for rule in rules if not rule.fixed and rule.constraints is None),
    )


def _allowed(
    snapshot: Snapshot,
    vm: Vm,
    hosts: Iterable[Host],
    filters: _Filters,
    refused: Collection[tuple[str, str]],
) -> frozenset[str]:
    """Hosts that the filters which are asked beforehand admit."""
    if why_immovable(snapshot, vm) is not None:
        return frozenset()
    asked = tuple(host.id for host in hosts if (vm.id, host.id) not in refused)
    for rule in (*filters.fixed, *filters.swayed):
        if rule.filter is not None:
            request = request_for(snapshot, vm.cluster, (vm.id,), asked)
            asked = tuple(verdict.host for verdict in rule.filter(snapshot, request) if verdict.accepted)
    return frozenset(asked)


def _groups(snapshot: Snapshot, constraints: Iterable[Constraint]) -> Iterable[Group]:
    standing = SnapshotStanding(snapshot)
    for constraint in constraints:
        running = tuple(vm for vm, _ in constraint.running(standing))
        if mends(constraint) and len(running) > 1:
            yield Group(replace(constraint, vms=running), frozenset(running))


def _by_vm(here: Collection[str], constraints: Iterable[Constraint]) -> Mapping[str, tuple[Constraint, ...]]:
    found = defaultdict(list)
    for constraint in constraints:
        for vm in constraint.vms:
            found[vm].append(constraint)
    return {vm: tuple(found[vm]) for vm in here}


def _companions(
    here: frozenset[str], constraints: Iterable[Constraint], kind: type[Constraint]
) -> Mapping[str, frozenset[str]]:
    """Other members of the constraints of one kind that hold a VM."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for constraint in constraints:
        if isinstance(constraint, kind):
            members = here.intersection(constraint.vms)
            for vm in members:
                found[vm] |= members
    return {vm: frozenset(found[vm] - {vm}) for vm in here}
