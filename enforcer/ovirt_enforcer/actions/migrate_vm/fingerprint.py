"""What a migration was decided under, as a short digest: while it stays the same, so does the answer.

Not in it: where VMs run, how busy anything is and how much memory is free. These change all the time, and a
move that is undone and repeated changes them itself.
"""

from __future__ import annotations

import hashlib

import msgspec

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.statistics import UNMEASURED

_DIGITS = 12


def digest(snapshot: Snapshot, vm: str, hosts: tuple[str, ...]) -> str:
    """The circumstances of a VM's migration between hosts, in whatever direction.

    They are the VM and the hosts as they are set up, its cluster's policy, the groups that it is in, which of
    their members run, and whether a host is emptied for maintenance: that is over soon, and VMs may return.
    """
    known = snapshot.vm_by_id.get(vm)
    groups = snapshot.groups_of_vm.get(vm, ())
    facts = (
        None if known is None else _set_up(known),
        [_set_up_host(snapshot.host_by_id.get(host)) for host in sorted(hosts)],
        None if known is None else snapshot.cluster_by_id.get(known.cluster),
        [
            (group, sorted(snapshot.group_vms[group.id]), sorted(snapshot.group_hosts[group.id]))
            for group in groups
        ],
        sorted(_run(snapshot.vm_by_id[peer]) for peer in _members(snapshot, vm) if _runs(snapshot, peer)),
    )
    drained = sorted(set(hosts).intersection(snapshot.draining_hosts))
    return hashlib.sha256(msgspec.json.encode((*facts, drained) if drained else facts)).hexdigest()[:_DIGITS]


def _members(snapshot: Snapshot, vm: str) -> set[str]:
    groups = snapshot.groups_of_vm.get(vm, ())
    return {vm, *(peer for group in groups for peer in snapshot.group_vms[group.id])}


def _runs(snapshot: Snapshot, vm: str) -> bool:
    known = snapshot.vm_by_id.get(vm)
    return known is not None and known.host is not None


def _run(vm: Vm) -> tuple[str, float]:
    """Which run of a VM this is."""
    return vm.id, vm.running_since or 0.0


def _set_up(vm: Vm) -> Vm:
    return msgspec.structs.replace(
        vm, host=None, status="", usage_mem_percent=None, usage_cpu_percent=None, migrating_to=None
    )


def _set_up_host(host: Host | None) -> Host | None:
    if host is None:
        return None
    return msgspec.structs.replace(host, free_mb=0, spm=False, **UNMEASURED)
