"""Makes one snapshot of several answers: what vanished between two requests is named by neither."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from operator import is_not
from typing import Any, NamedTuple

from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, AffinityLabel, Cluster, Host, Snapshot, Vm
from ovirt_placement.model.statuses import RUNNING_STATUSES

#: Where one of these lists is another than before, all of a snapshot is looked at.
_SELDOM_OTHERS = ("data_centers", "networks", "vnic_profiles", "affinity_labels")


class _There(NamedTuple):
    """What may be named: the ids of what is there and can stand."""

    data_centers: Set[str]
    clusters: Set[str]
    hosts: Set[str]
    vms: Set[str]
    profiles: Set[str]
    labels: Set[str]


class _Made(NamedTuple):
    reported: Snapshot
    snapshot: Snapshot
    there: _There


def consistent(snapshot: Snapshot) -> Snapshot:
    """Drop the references to what the snapshot does not hold, and what cannot stand without them."""
    return _made(snapshot).snapshot


class Consistency:
    """Makes one consistent snapshot after the other; what is as it was is not looked at again."""

    def __init__(self) -> None:
        self._last: _Made | None = None

    def of(self, reported: Snapshot) -> Snapshot:
        """Return what `consistent` does."""
        self._last = (self._last and _made_after(self._last, reported)) or _made(reported)
        return self._last.snapshot


def _made(reported: Snapshot) -> _Made:
    there = _there(reported)
    parts = {
        part: tuple(kept for one in getattr(reported, part) if (kept := keep(one, there)) is not None)
        for part, keep in _KEEP.items()
    }
    profiles = tuple(profile for profile in reported.vnic_profiles if profile.id in there.profiles)
    labels = tuple(_label(label, there) for label in reported.affinity_labels)
    return _Made(reported, replace(reported, **parts, vnic_profiles=profiles, affinity_labels=labels), there)


def _made_after(last: _Made, reported: Snapshot) -> _Made | None:
    """None if more differs than some records: what came or went may be named anywhere."""
    if any(getattr(reported, part) != getattr(last.reported, part) for part in _SELDOM_OTHERS):
        return None
    parts: dict[str, Any] = {}
    for part, keep in _KEEP.items():
        before, now, kept = (getattr(one, part) for one in (last.reported, reported, last.snapshot))
        if not len(before) == len(now) == len(kept):
            return None
        places = [at for at, other in enumerate(map(is_not, before, now)) if other]
        others = {at: keep(now[at], last.there) for at in places}
        if any(one is None or one.id != before[at].id for at, one in others.items()):
            return None
        parts[part] = _with(kept, others)
    same = {part: getattr(last.snapshot, part) for part in ("vnic_profiles", "affinity_labels")}
    return _Made(reported, replace(reported, **parts, **same), last.there)


def _with(records: tuple[Any, ...], others: Mapping[int, Any]) -> tuple[Any, ...]:
    if not others:
        return records
    found = list(records)
    for at, record in others.items():
        found[at] = record
    return tuple(found)


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
    """Keep a VM as it is wherever everything that it names is there, which is nearly always."""
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


#: By list, what is left of a record: None where it cannot stand.
_KEEP: Mapping[str, Callable[[Any, _There], Any]] = {
    "clusters": _cluster,
    "hosts": _host,
    "vms": _vm,
    "affinity_groups": _group,
}
