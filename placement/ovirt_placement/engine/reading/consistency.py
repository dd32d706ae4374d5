"""Makes one snapshot of several answers: what vanished between two requests is named by neither."""

from __future__ import annotations

from collections.abc import Collection, Set

from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, AffinityLabel, Cluster, Snapshot, Vm
from ovirt_placement.model.statuses import RUNNING_STATUSES


def consistent(snapshot: Snapshot) -> Snapshot:
    """Drop the references to what the snapshot does not hold, and what cannot stand without them."""
    clusters = tuple(_cluster(cluster, snapshot) for cluster in snapshot.clusters)
    hosts = tuple(host for host in snapshot.hosts if host.cluster in snapshot.cluster_by_id)
    networks = {network.id for network in snapshot.networks}
    profiles = tuple(profile for profile in snapshot.vnic_profiles if profile.network in networks)
    host_ids, profile_ids = {host.id for host in hosts}, {profile.id for profile in profiles}
    # There may be ten thousand VMs, and this is done for each version: most need not even a call.
    places, cluster_ids = {*host_ids, None}, set(snapshot.cluster_by_id)
    vms = tuple(
        vm
        if vm.host in places and vm.migrating_to in places and not vm.pinned_hosts and not vm.nics
        else _vm(vm, host_ids, profile_ids)
        for vm in snapshot.vms
        if vm.cluster in cluster_ids
    )
    vm_ids, label_ids = {vm.id for vm in vms}, set(snapshot.label_by_id)
    return replace(
        snapshot,
        clusters=clusters,
        hosts=hosts,
        vms=vms,
        vnic_profiles=profiles,
        affinity_groups=tuple(
            _group(group, vm_ids, host_ids, label_ids) for group in snapshot.affinity_groups
        ),
        affinity_labels=tuple(_label(label, vm_ids, host_ids) for label in snapshot.affinity_labels),
    )


def _cluster(cluster: Cluster, snapshot: Snapshot) -> Cluster:
    known = {data_center.id for data_center in snapshot.data_centers}
    return cluster if cluster.data_center in known else replace(cluster, data_center=None)


def _vm(vm: Vm, hosts: Collection[str], profiles: Collection[str]) -> Vm:
    """Keep a VM as it is wherever everything that it names is there, which is nearly always."""
    if vm.host is not None and vm.host not in hosts:
        # Its host was removed a moment ago: it runs on none that anybody may count on.
        vm = replace(vm, host=None, status="unknown" if vm.status in RUNNING_STATUSES else vm.status)
    if vm.migrating_to is not None and vm.migrating_to not in hosts:
        vm = replace(vm, migrating_to=None)
    if any(host not in hosts for host in vm.pinned_hosts):
        vm = replace(vm, pinned_hosts=_known(vm.pinned_hosts, hosts))
    if any(nic.vnic_profile is not None and nic.vnic_profile not in profiles for nic in vm.nics):
        vm = replace(
            vm,
            nics=tuple(
                nic if nic.vnic_profile in profiles else replace(nic, vnic_profile=None) for nic in vm.nics
            ),
        )
    return vm


def _group(group: AffinityGroup, vms: Set[str], hosts: Set[str], labels: Set[str]) -> AffinityGroup:
    if vms >= {*group.vms} and hosts >= {*group.hosts} and labels >= {*group.vm_labels, *group.host_labels}:
        return group
    return replace(
        group,
        vms=_known(group.vms, vms),
        hosts=_known(group.hosts, hosts),
        vm_labels=_known(group.vm_labels, labels),
        host_labels=_known(group.host_labels, labels),
    )


def _label(label: AffinityLabel, vms: Collection[str], hosts: Collection[str]) -> AffinityLabel:
    return replace(label, vms=_known(label.vms, vms), hosts=_known(label.hosts, hosts))


def _known(ids: tuple[str, ...], known: Collection[str]) -> tuple[str, ...]:
    return tuple(referred for referred in ids if referred in known)
