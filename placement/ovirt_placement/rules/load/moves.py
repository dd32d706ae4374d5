"""What every balance has in common: which VMs it may move now, and which hosts may take them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ovirt_placement.model import AffinityGroup, Snapshot, Vm
from ovirt_placement.rules.affinity import host_filter, vm_filter
from ovirt_placement.rules.affinity.membership import groups_of, hosts, members
from ovirt_placement.rules.doubts import doubt
from ovirt_placement.rules.locations import destinations
from ovirt_placement.rules.verdict import BalanceMove, Request


def may_move(snapshot: Snapshot, vm: Vm) -> bool:
    """Whether a VM runs, is movable, and is not on its way already; the hosted engine never is.

    Nothing is moved while something is not known yet that could forbid it.
    """
    resting = vm.movable and vm.status == "up" and vm.id not in snapshot.pending_hosts
    return resting and not doubt(snapshot, vm.cluster)


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
        if harmless := _harmless(snapshot, snapshot.vm_by_id[move.vm], move.hosts):
            return BalanceMove(move.vm, harmless)
    return first


def _harmless(snapshot: Snapshot, vm: Vm, targets: tuple[str, ...]) -> tuple[str, ...]:
    """The targets on which no soft group of a VM would be violated more than it is where the VM runs."""
    left = targets
    for group in groups_of(snapshot).get(vm.id, ()):
        if group.vms_rule.enabled and not group.vms_rule.enforcing:
            peers = _peers_by_host(snapshot, group, vm)
            sign = -1 if group.vms_rule.positive else 1
            left = tuple(host for host in left if sign * peers[host] <= sign * peers[vm.host])
        if group.hosts_rule.enabled and not group.hosts_rule.enforcing:
            meant = hosts(snapshot)[group.id]
            wanted = group.hosts_rule.positive
            if (vm.host in meant) is wanted:
                left = tuple(host for host in left if (host in meant) is wanted)
    return left


def _peers_by_host(snapshot: Snapshot, group: AffinityGroup, vm: Vm) -> Counter[str | None]:
    """How many other members of a group each host has, or is to have."""
    peers = (peer for peer in members(snapshot)[group.id] if peer != vm.id and peer in snapshot.vm_by_id)
    return Counter(host for peer in peers for host in destinations(snapshot, peer))
