"""Sub-collections that an engine has and the simulator's state does not: there, and empty."""

from __future__ import annotations

from collections.abc import Callable

from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import cluster, host, vm
from ovirt_simulator.http.resources.find import present, visible_clusters, visible_vm
from ovirt_simulator.http.resources.hosts import visible_host

#: Root elements that are named neither like their link nor like what `follow` calls it.
_ROOTS = {
    ("vms", "numanodes"): "vm_numa_nodes",
    ("vms", "mediateddevices"): "vm_mediated_devices",
    ("hosts", "numanodes"): "host_numa_nodes",
    ("hosts", "nics"): "host_nics",
    ("hosts", "devices"): "host_devices",
    ("hosts", "fenceagents"): "agents",
    ("hosts", "storage"): "host_storages",
    ("hosts", "cpuunits"): "host_cpu_units",
}

Empty = Callable[..., list[str]]


def _of_vm(call: Call, vm_id: str) -> list[str]:
    visible_vm(call, vm_id)
    return []


def _of_host(call: Call, host_id: str) -> list[str]:
    visible_host(call, host_id)
    return []


def _of_cluster(call: Call, cluster_id: str) -> list[str]:
    present(next((each for each in visible_clusters(call) if each.id == cluster_id), None))
    return []


def sub_collections() -> list[tuple[str, str, Empty]]:
    """Give the address pattern, root element and resource of each."""
    owners: list[tuple[str, str, dict[str, str | None], Empty]] = [
        ("vms", "vm_id", dict(vm.LINKS), _of_vm),
        ("hosts", "host_id", dict(host.LINKS), _of_host),
        ("clusters", "cluster_id", dict(cluster.LINKS), _of_cluster),
    ]
    return [
        (f"/{owner}/<{owner_id}>/{rel}", _ROOTS.get((owner, rel), name or rel), resource)
        for owner, owner_id, links, resource in owners
        for rel, name in links.items()
    ]
