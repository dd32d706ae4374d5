"""Builds parts of a snapshot in one line each, so that a test shows only what it is about.

A host has plenty of room, a VM is small, down and movable, and everything belongs to one cluster,
unless a test says otherwise.
"""

from typing import Any

from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.model import (
    AffinityGroup,
    AffinityLabel,
    AffinityRule,
    Cluster,
    Host,
    Pending,
    PlacementKey,
    PlacementRule,
    Snapshot,
    Vm,
)

CLUSTER = "cluster1"
#: What the engine counts for the video memory of a VM without QXL.
VGA_MB = 16

#: The rules of an affinity group; for hosts, "together" means on its hosts, "apart" off them.
TOGETHER = AffinityRule(enabled=True, positive=True, enforcing=True)
APART = AffinityRule(enabled=True, positive=False, enforcing=True)
SOFT_TOGETHER = AffinityRule(enabled=True, positive=True, enforcing=False)
SOFT_APART = AffinityRule(enabled=True, positive=False, enforcing=False)
DISABLED = AffinityRule(enabled=False, positive=False, enforcing=False)


def cluster(cluster_id: str = CLUSTER, **fields: Any) -> Cluster:
    return Cluster(**{"id": cluster_id, "name": cluster_id, "ha_reservation": False, **fields})


def host(host_id: str, **fields: Any) -> Host:
    defaults: dict[str, Any] = {
        "id": host_id,
        "name": host_id,
        "cluster": CLUSTER,
        "status": "up",
        "memory_mb": 65536,
        "free_mb": 32768,
        "cpu_percent": 20,
        "cores": 16,
    }
    return Host(**{**defaults, **fields})


def vm(vm_id: str, on: str | None = None, *, needs_mb: int = 1024, **fields: Any) -> Vm:
    """A VM that runs on the host named, or is down; it takes so much of a host unless its memory is given."""
    memory = {} if "memory_mb" in fields else of_so_much(needs_mb, fields.get("vcpus", 1))
    defaults: dict[str, Any] = {
        "id": vm_id,
        "name": vm_id,
        "cluster": CLUSTER,
        "host": on,
        "status": "up" if on else "down",
        "guaranteed_mb": min(1024, memory.get("memory_mb", 1024)),
        "usage_mem_percent": 50,
        "usage_cpu_percent": 10,
        "vcpus": 1,
        "ha": False,
        "migratable": True,
        "hosted_engine": False,
        **memory,
    }
    return Vm(**{**defaults, **fields})


def needed_mb(vm: Vm) -> int:
    """What a VM takes of its host, as the engine defines it (docs/rules.md)."""
    return vm.memory_mb + 64 + vm.memory_mb // 512 + 8 * vm.vcpus + 8 * vm.io_threads + vm.video_mb


def of_so_much(needs_mb: int, vcpus: int) -> dict[str, int]:
    """Memory of a VM with VGA that needs so much in all; a last MiB that pages leave over is one of video."""
    left_mb = needs_mb - 64 - 8 * vcpus - 8 - VGA_MB
    assert left_mb >= 0, f"a VM of {vcpus} CPUs needs more than {needs_mb} MiB"
    memory_mb = next(size for size in range(left_mb, -1, -1) if size + size // 512 <= left_mb)
    return {"memory_mb": memory_mb, "video_mb": VGA_MB + left_mb - memory_mb - memory_mb // 512}


def group(
    group_id: str,
    rule: AffinityRule = DISABLED,
    vms: str = "",
    *,
    hosts_rule: AffinityRule = DISABLED,
    hosts: str = "",
    **fields: Any,
) -> AffinityGroup:
    """An affinity group; members are given as ids with spaces between them."""
    defaults: dict[str, Any] = {
        "id": group_id,
        "name": group_id,
        "cluster": CLUSTER,
        "priority": 1.0,
        "vms_rule": rule,
        "hosts_rule": hosts_rule,
        "vms": tuple(vms.split()),
        "hosts": tuple(hosts.split()),
        "vm_labels": (),
        "host_labels": (),
    }
    return AffinityGroup(**{**defaults, **fields})


def label(label_id: str, vms: str = "", hosts: str = "", *, implicit: bool = False) -> AffinityLabel:
    return AffinityLabel(
        id=label_id, name=label_id, vms=tuple(vms.split()), hosts=tuple(hosts.split()), implicit=implicit
    )


def pending(vm_id: str, host_id: str) -> Pending:
    return Pending(vm=vm_id, host=host_id)


def rule(
    name: str, kind: str, vms: str = "", *, other_vms: str = "", hosts: str = "", **fields: Any
) -> PlacementRule:
    """A placement rule; members are given as words with spaces between them."""
    return PlacementRule(
        name=name,
        kind=kind,
        vms=tuple(vms.split()),
        other_vms=tuple(other_vms.split()),
        hosts=tuple(hosts.split()),
        **{"cluster": CLUSTER, **fields},
    )


Part = PlacementRule | Cluster | Host | Vm | AffinityGroup | AffinityLabel | Pending


def key(
    name: str,
    value: float | str = 1.0,
    weight: float | None = 100.0,
    level: str = "server",
    key_class: str = "system",
    *,
    resource: str = "new",
    sticky: bool = False,
) -> PlacementKey:
    """A key of a resource; the VM "new" itself, unless a test says otherwise."""
    return PlacementKey(level, resource, key_class, name, value, weight, sticky)


def node_key(host: str, name: str, value: float | str = 1.0, **fields: Any) -> PlacementKey:
    return key(name, value, level="node", resource=host, **{"weight": None, **fields})


def engine_event(code: int, **fields: Any) -> EngineEvent:
    """An event of the engine's log that is about nothing, unless a test says otherwise."""
    about: dict[str, Any] = {"correlation_id": None, "vm": None, "host": None, "cluster": None}
    defaults = {"id": 1, "severity": "normal", "time": 0.0, "description": "", **about}
    return EngineEvent(code=code, **{**defaults, **fields})


def snapshot(*parts: Part) -> Snapshot:
    """A snapshot of these parts, in any order, with the one cluster where none is given."""
    return Snapshot(
        clusters=tuple(part for part in parts if isinstance(part, Cluster)) or (cluster(),),
        hosts=tuple(part for part in parts if isinstance(part, Host)),
        vms=tuple(part for part in parts if isinstance(part, Vm)),
        affinity_groups=tuple(part for part in parts if isinstance(part, AffinityGroup)),
        affinity_labels=tuple(part for part in parts if isinstance(part, AffinityLabel)),
        pending=tuple(part for part in parts if isinstance(part, Pending)),
        placement_rules=tuple(part for part in parts if isinstance(part, PlacementRule)),
    )
