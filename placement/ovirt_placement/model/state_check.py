"""Refuses a snapshot that cannot be: dangling references, duplicate ids, impossible values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NoReturn, Protocol

from ovirt_placement.model import AffinityGroup, AffinityLabel, Cluster, Host, PlacementKey, Snapshot, Vm
from ovirt_placement.model.placement_keys import CLASSES, CLUSTER, NODE, SERVER, check_level
from ovirt_placement.model.statuses import HOST_STATUSES, RESTING_STATUSES, RUNNING_STATUSES, VM_STATUSES
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError


def check_keys(snapshot: Snapshot) -> None:
    """Check where keys are set; what is wrong with a key itself stops no placement and is not refused.

    Raises `UserError` for the first that is wrong, by its path: `placement_keys[3].level: unknown level`.
    """
    known: Mapping[str, tuple[str, Collection[str]]] = {
        CLUSTER: ("cluster", snapshot.cluster_by_id),
        SERVER: ("VM", snapshot.vm_by_id),
        NODE: ("host", snapshot.host_by_id),
    }
    first: dict[tuple[str, str, str, str], int] = {}
    for at, key in enumerate(snapshot.placement_keys):
        path = f"placement_keys[{at}]"
        _check_place(path, key, known)
        before = first.setdefault((key.level, key.resource, key.key_class, key.name), at)
        if before != at:
            raise UserError(f'{path}.name: "{key.name}" is set there by placement_keys[{before}] already')


def _check_place(path: str, key: PlacementKey, known: Mapping[str, tuple[str, Collection[str]]]) -> None:
    if key.key_class not in CLASSES:
        raise UserError(f'{path}.class: "{key.key_class}" is not one of {", ".join(CLASSES)}')
    check_level(key.level, f"{path}.level: ")
    if key.level in known:
        kind, ids = known[key.level]
        if key.resource not in ids:
            raise UserError(f'{path}.resource: no {kind} "{key.resource}"{nearest(key.resource, ids)}')


def check_rules(snapshot: Snapshot) -> None:
    """Check the names of rules; members that are not there stop no placement, and are reported elsewhere.

    Raises `UserError` for the first that is wrong, by its path: `placement_rules[3].name: ...`.
    """
    first: dict[str, int] = {}
    for at, rule in enumerate(snapshot.placement_rules):
        path = f"placement_rules[{at}].name"
        if not rule.name:
            raise UserError(f"{path}: a name cannot be empty")
        if (before := first.setdefault(rule.name, at)) != at:
            raise UserError(f'{path}: "{rule.name}" is the name of placement_rules[{before}] already')


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


def check(snapshot: Snapshot) -> None:
    """Check every reference and value of a snapshot.

    Raises `UserError` for the first that is wrong, by its path: `vms[3].host: no host "h9"`.
    """
    _check_ids(snapshot)
    for at, cluster in enumerate(snapshot.clusters):
        _check_cluster(f"clusters[{at}]", cluster, snapshot)
    for at, host in enumerate(snapshot.hosts):
        _check_host(f"hosts[{at}]", host, snapshot)
    profiles = _ids(snapshot.vnic_profiles)
    for at, vm in enumerate(snapshot.vms):
        _check_vm(f"vms[{at}]", vm, snapshot)
        _check_devices(f"vms[{at}]", vm, profiles)
    for at, label in enumerate(snapshot.affinity_labels):
        _check_label(f"affinity_labels[{at}]", label, snapshot)
    for at, group in enumerate(snapshot.affinity_groups):
        _check_group(f"affinity_groups[{at}]", group, snapshot)
    _check_networks(snapshot)
    _check_moving(snapshot)
    check_keys(snapshot)
    check_rules(snapshot)


def _check_ids(snapshot: Snapshot) -> None:
    lists: dict[str, Sequence[_Identified]] = {
        "data_centers": snapshot.data_centers,
        "clusters": snapshot.clusters,
        "hosts": snapshot.hosts,
        "vms": snapshot.vms,
        "networks": snapshot.networks,
        "vnic_profiles": snapshot.vnic_profiles,
        "affinity_groups": snapshot.affinity_groups,
        "affinity_labels": snapshot.affinity_labels,
    }
    for name, entries in lists.items():
        _check_unique(name, entries)


def _check_unique(name: str, entries: Sequence[_Identified]) -> None:
    first: dict[str, int] = {}
    for at, entry in enumerate(entries):
        if not entry.id:
            _refuse(f"{name}[{at}].id", "an id cannot be empty")
        if entry.id in first:
            _refuse(f"{name}[{at}].id", f'"{entry.id}" is the id of {name}[{first[entry.id]}] already')
        first[entry.id] = at


def _check_cluster(path: str, cluster: Cluster, snapshot: Snapshot) -> None:
    if cluster.data_center is not None:
        _check_reference(
            f"{path}.data_center", "data center", cluster.data_center, _ids(snapshot.data_centers)
        )
    for key in ("memory_overcommit_percent", "cpu_overcommit_percent"):
        _check_at_least(f"{path}.{key}", getattr(cluster, key), 1)
    _check_at_least(f"{path}.ha_failures", cluster.ha_failures, 0)
    for unit, factor in cluster.policy.items():
        _check_at_least(f"{path}.policy.{unit}", factor, 0)
    if cluster.scheduling_policy is not None:
        for unit, factor in cluster.scheduling_policy.weights.items():
            _check_at_least(f"{path}.scheduling_policy.weights.{unit}", factor, 0)


def _check_host(path: str, host: Host, snapshot: Snapshot) -> None:
    _check_reference(f"{path}.cluster", "cluster", host.cluster, snapshot.cluster_by_id)
    _check_status(f"{path}.status", host.status, HOST_STATUSES)
    for key in (
        "memory_mb", "free_mb", "cores", "threads", "memory_free_mb", "swap_free_mb", "load_average_5m",
    ):  # fmt: skip
        _check_at_least(f"{path}.{key}", getattr(host, key), 0)
    for size, count in host.free_huge_pages.items():
        _check_at_least(f"{path}.free_huge_pages", size, 1)
        _check_at_least(f"{path}.free_huge_pages.{size}", count, 0)
    _check_percent(f"{path}.cpu_percent", host.cpu_percent)


def _check_vm(path: str, vm: Vm, snapshot: Snapshot) -> None:
    _check_reference(f"{path}.cluster", "cluster", vm.cluster, snapshot.cluster_by_id)
    _check_status(f"{path}.status", vm.status, VM_STATUSES)
    if vm.host is None and vm.status in RUNNING_STATUSES:
        _refuse(f"{path}.host", f'a VM with the status "{vm.status}" is on a host; name it')
    if vm.host is not None and vm.status in RESTING_STATUSES:
        _refuse(f"{path}.host", f'a VM with the status "{vm.status}" is on no host; write null')
    if vm.crashed and vm.status != "down":
        _refuse(f"{path}.crashed", f'a VM with the status "{vm.status}" has not crashed')
    on_hosts = [
        ("host", vm.host),
        ("migrating_to", vm.migrating_to),
        *((f"pinned_hosts[{at}]", host) for at, host in enumerate(vm.pinned_hosts)),
    ]
    for key, host in on_hosts:
        if host is not None:
            _check_reference(f"{path}.{key}", "host", host, snapshot.host_by_id)
    for key in ("memory_mb", "guaranteed_mb", "io_threads", "video_mb", "max_memory_mb", "ha_priority"):
        _check_at_least(f"{path}.{key}", getattr(vm, key), 0)
    for key in ("vcpus", "threads_per_core", "cpu_sockets"):
        _check_at_least(f"{path}.{key}", getattr(vm, key), 1)
    _check_percent(f"{path}.usage_mem_percent", vm.usage_mem_percent)
    _check_percent(f"{path}.usage_cpu_percent", vm.usage_cpu_percent)


def _check_devices(path: str, vm: Vm, profiles: Collection[str]) -> None:
    _check_unique(f"{path}.disks", vm.disks)
    _check_unique(f"{path}.nics", vm.nics)
    for at, nic in enumerate(vm.nics):
        if nic.vnic_profile is not None:
            _check_reference(f"{path}.nics[{at}].vnic_profile", "vNIC profile", nic.vnic_profile, profiles)


def _check_label(path: str, label: AffinityLabel, snapshot: Snapshot) -> None:
    _check_references(f"{path}.vms", "VM", label.vms, snapshot.vm_by_id)
    _check_references(f"{path}.hosts", "host", label.hosts, snapshot.host_by_id)


def _check_group(path: str, group: AffinityGroup, snapshot: Snapshot) -> None:
    """Members of other clusters are legal: the engine lets them in, and its rules say what they count for."""
    _check_reference(f"{path}.cluster", "cluster", group.cluster, snapshot.cluster_by_id)
    _check_references(f"{path}.vms", "VM", group.vms, snapshot.vm_by_id)
    _check_references(f"{path}.hosts", "host", group.hosts, snapshot.host_by_id)
    _check_references(f"{path}.vm_labels", "affinity label", group.vm_labels, snapshot.label_by_id)
    _check_references(f"{path}.host_labels", "affinity label", group.host_labels, snapshot.label_by_id)


def _check_networks(snapshot: Snapshot) -> None:
    networks = _ids(snapshot.networks)
    for at, profile in enumerate(snapshot.vnic_profiles):
        _check_reference(f"vnic_profiles[{at}].network", "network", profile.network, networks)


def _check_moving(snapshot: Snapshot) -> None:
    for at, pending in enumerate(snapshot.pending):
        _check_reference(f"pending[{at}].vm", "VM", pending.vm, snapshot.vm_by_id)
        _check_reference(f"pending[{at}].host", "host", pending.host, snapshot.host_by_id)
        _check_at_least(f"pending[{at}].memory_mb", pending.memory_mb, 0)
    for at, frozen in enumerate(snapshot.frozen_keys):
        _check_reference(f"frozen_keys[{at}].vm", "VM", frozen.vm, snapshot.vm_by_id)
    for at, sticky in enumerate(snapshot.sticky_copies):
        _check_reference(f"sticky_copies[{at}].vm", "VM", sticky.vm, snapshot.vm_by_id)
    _check_references("draining_hosts", "host", snapshot.draining_hosts, snapshot.host_by_id)


def _check_references(path: str, kind: str, ids: Iterable[str], known: Collection[str]) -> None:
    for at, referred in enumerate(ids):
        _check_reference(f"{path}[{at}]", kind, referred, known)


def _check_reference(path: str, kind: str, referred: str, known: Collection[str]) -> None:
    if referred not in known:
        _refuse(path, f'no {kind} "{referred}"')


def _check_status(path: str, status: str, known: Collection[str]) -> None:
    if status not in known:
        _refuse(path, f'no status "{status}"{nearest(status.lower(), known)}')


def _check_at_least(path: str, number: float | None, least: int) -> None:
    if number is not None and number < least:
        _refuse(path, f"{number} is less than {least}")


def _check_percent(path: str, number: float | None) -> None:
    if number is not None and not 0 <= number <= 100:
        _refuse(path, f"{number:g} is not between 0 and 100")


def _ids(entries: Iterable[_Identified]) -> frozenset[str]:
    return frozenset(entry.id for entry in entries)


def _refuse(path: str, text: str) -> NoReturn:
    raise UserError(f"{path}: {text}")
