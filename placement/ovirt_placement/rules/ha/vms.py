"""Where the highly available VMs of a cluster are, or are about to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.index import continued


@continued
def ha_vms_of(snapshot: Snapshot, before: Snapshot | None) -> Mapping[tuple[str, str], Sequence[str]]:
    """Ids of highly available VMs by cluster and host; one on its way counts where it is going (HA2)."""
    if before is None or before.vm_by_id is not snapshot.vm_by_id:
        return _counted(snapshot, (vm for vm in snapshot.vms if vm.ha), {})
    ways = before.pending_hosts.items() ^ snapshot.pending_hosts.items()
    changed = {vm for vm, _ in ways if vm in snapshot.vm_by_id and snapshot.vm_by_id[vm].ha}
    kept = {}
    for place, vms in ha_vms_of(before).items():
        left = vms if changed.isdisjoint(vms) else [vm for vm in vms if vm not in changed]
        if left:
            kept[place] = left
    return _counted(snapshot, (snapshot.vm_by_id[vm] for vm in sorted(changed)), kept)


def _counted(
    snapshot: Snapshot, vms: Iterable[Vm], kept: Mapping[tuple[str, str], Sequence[str]]
) -> Mapping[tuple[str, str], Sequence[str]]:
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for vm in vms:
        present = (vm.host,) if vm.host is not None else ()
        for host in snapshot.pending_hosts.get(vm.id, present):
            found[vm.cluster, host].append(vm.id)
    return {**kept, **{place: [*kept.get(place, ()), *more] for place, more in found.items()}}
