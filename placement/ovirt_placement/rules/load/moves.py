"""What every balance has in common: which VMs it may move now, and which hosts may take them."""

from __future__ import annotations

from collections.abc import Iterable

from ovirt_placement.model import AffinityGroup, Snapshot, Vm
from ovirt_placement.rules.affinity import host_filter, vm_filter
from ovirt_placement.rules.affinity.membership import hosts, members
from ovirt_placement.rules.locations import destinations
from ovirt_placement.rules.verdict import BalanceMove, Request


def may_move(snapshot: Snapshot, vm: Vm) -> bool:
    """Whether a VM runs, is movable, and is not on its way already; the hosted engine never is."""
    return vm.movable and vm.status == "up" and vm.id not in snapshot.pending_hosts


def kept_free(snapshot: Snapshot, host: str) -> bool:
    """Whether a host is a dedicated failover host, which nothing is sent to."""
    known = snapshot.host_by_id.get(host)
    return known is not None and known.failover


def admitted(snapshot: Snapshot, vm: Vm, targets: tuple[str, ...]) -> tuple[str, ...]:
    """The targets that both hard affinity rules admit: the engine would choose no other."""
    request = Request((vm.id,), targets)
    refused = {
        verdict.host
        for judge in (vm_filter.filter_hosts, host_filter.filter_hosts)
        for verdict in judge(snapshot, request)
        if not verdict.accepted
    }
    return tuple(host for host in targets if host not in refused)


def choose_move(snapshot: Snapshot, moves: Iterable[BalanceMove]) -> BalanceMove | None:
    """The first move that breaks no soft group, with the hosts that break none; else the first.

    What breaks one would be moved back by who repairs soft groups, again and again.
    """
    first = None
    for move in moves:
        first = first or move
        vm = snapshot.vm_by_id[move.vm]
        if harmless := tuple(host for host in move.hosts if not _breaks_soft_group(snapshot, vm, host)):
            return BalanceMove(move.vm, harmless)
    return first


def _breaks_soft_group(snapshot: Snapshot, vm: Vm, host: str) -> bool:
    """Whether a soft group of a VM would be violated on a host more than it is where the VM runs."""
    groups = (group for group in snapshot.affinity_groups if vm.id in members(snapshot)[group.id])
    return any(_worse(snapshot, group, vm, host) for group in groups)


def _worse(snapshot: Snapshot, group: AffinityGroup, vm: Vm, host: str) -> bool:
    if group.vms_rule.enabled and not group.vms_rule.enforcing:
        there, here = (_peers(snapshot, group, vm, place) for place in (host, vm.host))
        if there < here if group.vms_rule.positive else there > here:
            return True
    if group.hosts_rule.enabled and not group.hosts_rule.enforcing:
        meant = hosts(snapshot)[group.id]
        violated, before = ((place in meant) is not group.hosts_rule.positive for place in (host, vm.host))
        return violated and not before
    return False


def _peers(snapshot: Snapshot, group: AffinityGroup, vm: Vm, host: str | None) -> int:
    peers = (peer for peer in members(snapshot)[group.id] if peer != vm.id and peer in snapshot.vm_by_id)
    return sum(host in destinations(snapshot, peer) for peer in peers)
