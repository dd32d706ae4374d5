"""Where the highly available VMs of a cluster are, or are about to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.index import once_per_snapshot


@once_per_snapshot
def ha_vms_of(snapshot: Snapshot) -> Mapping[tuple[str, str], Sequence[str]]:
    """Ids of highly available VMs by cluster and host; one on its way counts where it is going (HA2)."""
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    on_their_way = snapshot.pending_hosts
    for vm in snapshot.vms:
        if vm.ha and vm.id in on_their_way:
            for host in on_their_way[vm.id]:
                found[vm.cluster, host].append(vm.id)
        elif vm.ha and vm.host is not None:
            found[vm.cluster, vm.host].append(vm.id)
    return dict(found)
