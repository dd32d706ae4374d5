"""Where the engine's own units for groups of VMs see the other members of a group.

Source: VmAffinityFilterPolicyUnit and VmAffinityWeightPolicyUnit: of running VMs they ask for those of the
cluster of the VM that is scheduled (`getAllRunningByCluster`); pending ones stand in their place, and have no
cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.locations import destinations


def peers_by_host(snapshot: Snapshot, group: AffinityGroup, vms: Sequence[str]) -> dict[str, list[str]]:
    """The members of a group besides some VMs of one cluster, by the host that they count on."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    first = snapshot.vm_by_id.get(vms[0]) if vms else None
    for peer in snapshot.group_vms[group.id]:
        if peer not in vms:
            for host in seen_on(snapshot, peer, first.cluster if first is not None else None):
                found[host].append(peer)
    return dict(found)


def seen_on(snapshot: Snapshot, peer: str, cluster: str | None) -> tuple[str, ...]:
    """The hosts that a VM counts on for one of the cluster: its target while it is pending, else its host."""
    known = snapshot.vm_by_id.get(peer)
    foreign = known is not None and cluster is not None and known.cluster != cluster
    return snapshot.pending_hosts.get(peer, ()) if foreign else destinations(snapshot, peer)
