"""What every balance has in common: which VMs it may move now, and which hosts may take them."""

from __future__ import annotations

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.affinity import host_filter, vm_filter
from ovirt_placement.rules.verdict import Request


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
