"""Where the engine's affinity units see other VMs, and which VMs are on their way to a host.

Source: the engine's VmAffinityFilterPolicyUnit, VmAffinityWeightPolicyUnit and PendingResourceManager.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ovirt_placement.model import AffinityGroup, Host, Snapshot, Vm

#: What a VM is called that runs on a host and does not yet power up there.
_STARTING = {"wait_for_launch", "restoring_state"}


def peer_places(
    snapshot: Snapshot, group: AffinityGroup, vms: Sequence[Vm], scheduled: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Give the hosts of the group's other members, by VM id: where each is on its way to, else where it runs.

    One that runs counts only if it is of the cluster of the first of the VMs (getAllRunningByCluster); one
    on its way counts wherever it belongs.
    """
    places = {}
    for vm_id in snapshot.group_vms[group.id]:
        if vm_id not in scheduled:
            places[vm_id] = _places(snapshot, snapshot.vm_by_id[vm_id], vms[0].cluster)
    return places


def _places(snapshot: Snapshot, peer: Vm, cluster: str) -> tuple[str, ...]:
    if peer.id in snapshot.pending_hosts:
        return snapshot.pending_hosts[peer.id]
    return () if peer.host is None or peer.cluster != cluster else (peer.host,)


def coming_to(snapshot: Snapshot, host: Host) -> list[Vm]:
    """Give the VMs whose resources are pending on the host: they migrate there, or are yet to power up."""
    coming = [snapshot.vm_by_id[vm_id] for vm_id, hosts in snapshot.pending_hosts.items() if host.id in hosts]
    known = {vm.id for vm in coming}
    there = snapshot.vms_of_host.get(host.id, ())
    return coming + [vm for vm in there if vm.status in _STARTING and vm.id not in known]


def cpus(host: Host, snapshot: Snapshot) -> int:
    """Give the host's CPUs: its threads where the cluster counts them as cores, else its cores."""
    threads = snapshot.cluster_by_id[host.cluster].count_threads_as_cores
    return host.threads if threads and host.threads is not None else host.cores
