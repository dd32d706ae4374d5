"""Where the highly available VMs of a cluster are, or are about to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ovirt_placement.lookups.index import Earlier, continued
from ovirt_placement.model import Snapshot

#: Ids of a cluster and of a host.
Place = tuple[str, str]


@continued
def ha_vms_of(snapshot: Snapshot, earlier: Earlier | None) -> Mapping[Place, Sequence[str]]:
    """Ids of highly available VMs by cluster and host; one on its way counts where it is going (HA2)."""
    if earlier is None:
        found: defaultdict[Place, list[str]] = defaultdict(list)
        for vm in snapshot.vms:
            if vm.ha:
                for place in places(snapshot, vm.id):
                    found[place].append(vm.id)
        return dict(found)
    exchanged = dict(ha_vms_of(earlier.snapshot))
    for name in sorted(earlier.differing(snapshot)):
        for place in places(earlier.snapshot, name):
            exchanged[place] = [one for one in exchanged[place] if one != name]
        for place in places(snapshot, name):
            exchanged[place] = [*exchanged.get(place, ()), name]
    return exchanged


def places(snapshot: Snapshot, name: str) -> Sequence[Place]:
    """Cluster and host of a highly available VM; several hosts, if it is on its way to several."""
    vm = snapshot.vm_by_id.get(name)
    if vm is None or not vm.ha:
        return ()
    present = (vm.host,) if vm.host is not None else ()
    return [(vm.cluster, host) for host in snapshot.pending_hosts.get(name, present)]
