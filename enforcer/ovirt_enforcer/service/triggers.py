"""Finds the clusters to look at: something happened there that can violate or repair a rule."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from ovirt_placement.engine.event_codes import EventCode
from ovirt_placement.engine.reading.events import MIGRATION_CODES, VM_STARTED, EngineEvent
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.statistics import UNMEASURED

#: A cluster, a group, a label or a policy was added, changed or removed.
_RULES: Final = frozenset(
    {
        EventCode.USER_UPDATE_CLUSTER,
        EventCode.USER_ADDED_AFFINITY_GROUP,
        EventCode.USER_UPDATED_AFFINITY_GROUP,
        EventCode.USER_REMOVED_AFFINITY_GROUP,
        EventCode.USER_ADDED_AFFINITY_LABEL,
        EventCode.USER_UPDATED_AFFINITY_LABEL,
        EventCode.USER_REMOVED_AFFINITY_LABEL,
        EventCode.USER_ADD_CLUSTER_POLICY,
        EventCode.USER_UPDATE_CLUSTER_POLICY,
        EventCode.USER_REMOVE_CLUSTER_POLICY,
    }
)
#: A host was added, removed or changed, or its status was.
_HOSTS: Final = frozenset(
    {
        EventCode.VDS_FAILURE,
        EventCode.VDS_DETECTED,
        EventCode.VDS_RECOVER,
        EventCode.VDS_MAINTENANCE,
        EventCode.VDS_ACTIVATE,
        EventCode.USER_ADD_VDS,
        EventCode.USER_UPDATE_VDS,
        EventCode.USER_REMOVE_VDS,
        EventCode.VDS_APPROVE,
        EventCode.VDS_SET_NONOPERATIONAL,
        EventCode.USER_VDS_MAINTENANCE,
        EventCode.USER_VDS_MAINTENANCE_WITHOUT_REASON,
    }
)
#: A VM stopped or was changed.
_VMS: Final = frozenset(
    {
        EventCode.USER_STOP_VM,
        EventCode.USER_UPDATE_VM,
        EventCode.USER_PAUSE_VM,
        EventCode.USER_RESUME_VM,
        EventCode.VM_DOWN,
        EventCode.USER_INITIATED_SHUTDOWN_VM,
        EventCode.VM_DOWN_ERROR,
        EventCode.VM_WAS_SET_DOWN_DUE_TO_HOST_REBOOT_OR_MANUAL_FENCE,
        EventCode.USER_SUSPEND_VM,
        EventCode.USER_SUSPEND_VM_OK,
    }
)
_REPORTING: Final = _RULES | _HOSTS | _VMS | VM_STARTED | MIGRATION_CODES


def reported(events: Iterable[EngineEvent], known: Snapshot, ours: Collection[str]) -> set[str]:
    """Clusters that events concern; all, where one of weight names none.

    Migrations with our own correlation ids do not count: they are watched anyway.
    """
    found: set[str] = set()
    for event in events:
        if event.code in _REPORTING and event.correlation_id not in ours:
            cluster = _cluster_of(event, known)
            found |= known.cluster_by_id.keys() if cluster is None else {cluster}
    return found


def changed(before: Snapshot, after: Snapshot, ours: Collection[str]) -> set[str]:
    """Clusters whose rules, hosts, VMs or keys differ in what can violate or repair a rule.

    Where the VMs in `ours` are does not count.
    """
    if before is after:
        return set()
    if _stored(before) != _stored(after):
        return {*after.cluster_by_id}
    one, other = _facts(before, ours), _facts(after, ours)
    return {cluster for cluster in one.keys() | other.keys() if one.get(cluster) != other.get(cluster)}


def _cluster_of(event: EngineEvent, known: Snapshot) -> str | None:
    if event.cluster is not None:
        return event.cluster
    if event.vm in known.vm_by_id:
        return known.vm_by_id[event.vm].cluster
    if event.host in known.host_by_id:
        return known.host_by_id[event.host].cluster
    return None


def _stored(snapshot: Snapshot) -> tuple[object, ...]:
    """Placement keys and rules with whom they search, and hosts that are emptied."""
    keys = (snapshot.placement_keys, snapshot.frozen_keys, snapshot.sticky_copies)
    return (*keys, snapshot.placement_rules, snapshot.member_searches, snapshot.draining_hosts)


def _facts(snapshot: Snapshot, ours: Collection[str]) -> dict[str, set[Hashable]]:
    """What counts, by cluster."""
    found: dict[str, set[Hashable]] = {cluster.id: set() for cluster in snapshot.clusters}
    for cluster, fact in _each_fact(snapshot, ours):
        found.setdefault(cluster, set()).add(fact)
    return found


def _each_fact(snapshot: Snapshot, ours: Collection[str]) -> Iterator[tuple[str, Hashable]]:
    for cluster in snapshot.clusters:
        yield cluster.id, repr(cluster)
        for label in snapshot.affinity_labels:
            if label.implicit:
                yield cluster.id, repr(label)
    for host in snapshot.hosts:
        yield host.cluster, repr(_lasting(host))
    for vm in snapshot.vms:
        where = None if vm.id in ours else vm.host
        size = vm.memory_mb, vm.guaranteed_mb, vm.vcpus
        restart = vm.ha, vm.ha_priority
        yield vm.cluster, (vm.id, where, _status(vm), restart, size, vm.migratable, vm.pinned_hosts)
    for group in snapshot.affinity_groups:
        yield group.cluster, (repr(group), snapshot.group_vms[group.id], snapshot.group_hosts[group.id])


def _lasting(host: Host) -> Host:
    return replace(host, free_mb=0, spm=False, **UNMEASURED)


def _status(vm: Vm) -> str:
    """While it migrates, a VM counts as running where it is."""
    return "up" if vm.status == "migrating" else vm.status
