"""Makes one snapshot of several answers: what vanished between two requests is named by neither."""

from collections.abc import Callable, Collection, Sequence, Set
from itertools import chain
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, AffinityLabel, Cluster, Host, Snapshot, Vm
from ovirt_placement.model.infrastructure import RUNNING_STATUSES

_Record = TypeVar("_Record")


class _There(NamedTuple):
    """What may be named: the ids of what is there and can stand."""

    data_centers: Set[str]
    clusters: Set[str]
    hosts: Set[str]
    vms: Set[str]
    profiles: Set[str]
    labels: Set[str]


def consistent(snapshot: Snapshot) -> Snapshot:
    """Drop the references to what the snapshot does not hold, and what cannot stand without them."""
    there = _there(snapshot)
    return replace(
        snapshot,
        clusters=_kept(snapshot.clusters, _cluster, there),
        hosts=_kept(snapshot.hosts, _host, there),
        vms=snapshot.vms if _all_stand(snapshot.vms, there) else _kept(snapshot.vms, _vm, there),
        affinity_groups=_kept(snapshot.affinity_groups, _group, there),
        affinity_labels=_kept(snapshot.affinity_labels, _label, there),
        vnic_profiles=tuple(profile for profile in snapshot.vnic_profiles if profile.id in there.profiles),
    )


def _kept(
    records: Sequence[_Record], keep: Callable[[_Record, _There], _Record | None], there: _There
) -> tuple[_Record, ...]:
    """What is left of these records, those that can stand; most are as they were."""
    return tuple(kept for one in records if (kept := keep(one, there)) is not None)


def _all_stand(vms: Sequence[Vm], there: _There) -> bool:
    """Whether everything that any VM names is there, as nearly always: sets show that much quicker."""
    hosts: set[str | None] = {vm.host for vm in vms}
    hosts.update(vm.migrating_to for vm in vms)
    hosts.update(chain.from_iterable(vm.pinned_hosts for vm in vms))
    profiles = {nic.vnic_profile for vm in vms for nic in vm.nics}
    return (
        {vm.cluster for vm in vms} <= there.clusters
        and hosts - {None} <= there.hosts
        and profiles - {None} <= there.profiles
    )


def _there(reported: Snapshot) -> _There:
    clusters = {cluster.id for cluster in reported.clusters}
    networks = {network.id for network in reported.networks}
    return _There(
        data_centers={data_center.id for data_center in reported.data_centers},
        clusters=clusters,
        hosts={host.id for host in reported.hosts if host.cluster in clusters},
        vms={vm.id for vm in reported.vms if vm.cluster in clusters},
        profiles={profile.id for profile in reported.vnic_profiles if profile.network in networks},
        labels={label.id for label in reported.affinity_labels},
    )


def _cluster(cluster: Cluster, there: _There) -> Cluster:
    return cluster if cluster.data_center in there.data_centers else replace(cluster, data_center=None)


def _host(host: Host, there: _There) -> Host | None:
    return host if host.cluster in there.clusters else None


def _vm(vm: Vm, there: _There) -> Vm | None:
    """Keep of a VM what can stand."""
    if vm.cluster not in there.clusters:
        return None
    if vm.host is not None and vm.host not in there.hosts:
        # Its host was removed a moment ago: it runs on none that is known.
        vm = replace(vm, host=None, status="unknown" if vm.status in RUNNING_STATUSES else vm.status)
    if vm.migrating_to is not None and vm.migrating_to not in there.hosts:
        vm = replace(vm, migrating_to=None)
    if vm.pinned_hosts and not there.hosts >= {*vm.pinned_hosts}:
        vm = replace(vm, pinned_hosts=_known(vm.pinned_hosts, there.hosts))
    if any(nic.vnic_profile is not None and nic.vnic_profile not in there.profiles for nic in vm.nics):
        vm = replace(
            vm,
            nics=tuple(
                nic if nic.vnic_profile in there.profiles else replace(nic, vnic_profile=None)
                for nic in vm.nics
            ),
        )
    return vm


def _group(group: AffinityGroup, there: _There) -> AffinityGroup:
    labels = {*group.vm_labels, *group.host_labels}
    if there.vms >= {*group.vms} and there.hosts >= {*group.hosts} and there.labels >= labels:
        return group
    return replace(
        group,
        vms=_known(group.vms, there.vms),
        hosts=_known(group.hosts, there.hosts),
        vm_labels=_known(group.vm_labels, there.labels),
        host_labels=_known(group.host_labels, there.labels),
    )


def _label(label: AffinityLabel, there: _There) -> AffinityLabel:
    return replace(label, vms=_known(label.vms, there.vms), hosts=_known(label.hosts, there.hosts))


def _known(ids: tuple[str, ...], known: Collection[str]) -> tuple[str, ...]:
    return tuple(referred for referred in ids if referred in known)
