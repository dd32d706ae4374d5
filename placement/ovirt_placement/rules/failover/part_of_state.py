"""As much of a state as says whether some VMs may start on some hosts: that is quicker to ask about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from ovirt_placement.lookups.index import share
from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.unified_groups import hard_positive_group_of


def part_of(snapshot: Snapshot, vms: Iterable[str], hosts: AbstractSet[str]) -> Snapshot:
    """As much of a state as says whether these VMs may start on these hosts.

    That is what is on the hosts or on its way there, and the VMs' groups with all who belong to them.
    """
    groups = {group.id: group for vm in vms for group in _groups(snapshot, vm)}
    arriving = (vm for vm, targets in snapshot.pending_hosts.items() if not hosts.isdisjoint(targets))
    kept = dict.fromkeys(vms)
    kept.update((vm, None) for group in groups for vm in snapshot.group_vms[group])
    kept.update((vm.id, None) for host in hosts for vm in snapshot.vms_of_host.get(host, ()))
    kept.update((vm, None) for vm in arriving)
    part = replace(
        snapshot,
        hosts=tuple(snapshot.host_by_id[host] for host in hosts),
        vms=tuple(snapshot.vm_by_id[vm] for vm in kept if vm in snapshot.vm_by_id),
        affinity_groups=tuple(groups.values()),
        pending=tuple(entry for entry in snapshot.pending if entry.vm in kept),
    )
    share(part, snapshot)
    return part


def _groups(snapshot: Snapshot, vm: str) -> Iterator[AffinityGroup]:
    """The groups of a VM, and all that hard positive ones among them are chained to."""
    yield from snapshot.groups_of_vm.get(vm, ())
    unified = hard_positive_group_of(snapshot).get(vm)
    if unified is not None:
        yield from (snapshot.group_by_id[group] for group in unified.groups)
