"""What the engine asks of a host before any affinity: that it is up, has the memory, and may be used."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.locations import occupied
from ovirt_placement.rules.verdict import Kind, Reason, Request, Verdict


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge each candidate host, in order, by its status, its free memory and the VMs' pinning.

    The memory of all requested VMs that are not on the host yet must fit into what its scheduler may
    still hand out. Only VMs that cannot be migrated are bound to the hosts that they are pinned to.
    """
    vms = [snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id]
    return tuple(Verdict.of(host, tuple(_vetoes(snapshot, vms, host))) for host in request.candidate_hosts)


def _vetoes(snapshot: Snapshot, vms: list[Vm], host_id: str) -> Iterator[Reason]:
    host = snapshot.host_by_id.get(host_id)
    if host is None:
        return
    if not host.up:
        yield Reason(Kind.HOST_NOT_UP, host=host_id)
    needed = sum(vm.memory_mb for vm in vms if host_id not in occupied(snapshot, vm.id))
    if needed > host.free_mb:
        yield Reason(Kind.MEMORY_HANDED_OUT, host=host_id, number=host.free_mb)
    for vm in vms:
        if vm.pinned_hosts and not vm.migratable and host_id not in vm.pinned_hosts:
            yield Reason(Kind.PINNED_ELSEWHERE, vm=vm.id)
