"""Where the highly available VMs of a cluster are, or are about to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.index import once_per_snapshot
from ovirt_placement.rules.locations import destinations


@once_per_snapshot
def ha_vms_of(snapshot: Snapshot) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Ids of highly available VMs by cluster and host; one on its way counts where it is going (HA2)."""
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for vm in snapshot.vms:
        if vm.ha:
            for host in destinations(snapshot, vm.id):
                found[vm.cluster, host].append(vm.id)
    return {place: tuple(vms) for place, vms in found.items()}
