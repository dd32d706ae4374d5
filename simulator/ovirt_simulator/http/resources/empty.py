"""Collections that an engine has and the simulator's state does not: there, and empty."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import cluster, host, host_nic, infrastructure, storage, template, vm
from ovirt_simulator.http.render.root import COLLECTIONS
from ovirt_simulator.http.resources import users
from ovirt_simulator.http.resources.find import present, visible_clusters, visible_vm
from ovirt_simulator.http.resources.host_nics import visible_nic
from ovirt_simulator.http.resources.hosts import visible_host

#: Root elements that are named neither like their link nor like what `follow` calls it.
_ROOTS = {
    "/vms/<vm_id>/numanodes": "vm_numa_nodes",
    "/vms/<vm_id>/mediateddevices": "vm_mediated_devices",
    "/hosts/<host_id>/numanodes": "host_numa_nodes",
    "/hosts/<host_id>/nics": "host_nics",
    "/hosts/<host_id>/devices": "host_devices",
    "/hosts/<host_id>/fenceagents": "agents",
    "/hosts/<host_id>/storage": "host_storages",
    "/hosts/<host_id>/cpuunits": "host_cpu_units",
    "/clusters/<cluster_id>/enabledfeatures": "cluster_features",
    "/clusters/<cluster_id>/externalnetworkproviders": "external_providers",
    "/templates/<template_id>/mediateddevices": "vm_mediated_devices",
    "/users/<wanted>/eventsubscriptions": "event_subscriptions",
    "/users/<wanted>/options": "user_options",
}

Empty = Callable[..., list[str]]


def _of_vm(call: Call, vm_id: str) -> list[str]:
    visible_vm(call, vm_id)
    return []


def _of_host(call: Call, host_id: str) -> list[str]:
    visible_host(call, host_id)
    return []


def _of_host_nic(call: Call, host_id: str, nic_id: str) -> list[str]:
    visible_nic(call, host_id, nic_id)
    return []


def _of_cluster(call: Call, cluster_id: str) -> list[str]:
    present(next((each for each in visible_clusters(call) if each.id == cluster_id), None))
    return []


def _of_user(call: Call, wanted: str) -> list[str]:
    users.find_user(call, wanted)
    return []


def _of_other(call: Call, **_: str) -> list[str]:
    return []


#: Address patterns of owners, their sub-collections, and the resource that looks the owner up.
_OWNERS: list[tuple[str, Mapping[str, str | None], Empty]] = [
    ("/vms/<vm_id>", vm.LINKS, _of_vm),
    ("/vms/<vm_id>/nics/<nic_id>", vm.NIC_LINKS, _of_other),
    ("/hosts/<host_id>", host.LINKS, _of_host),
    ("/hosts/<host_id>/nics/<nic_id>", host_nic.LINKS, _of_host_nic),
    ("/clusters/<cluster_id>", cluster.LINKS, _of_cluster),
    ("/datacenters/<data_center_id>", infrastructure.DATA_CENTER_LINKS, _of_other),
    ("/networks/<network_id>", infrastructure.NETWORK_LINKS, _of_other),
    ("/vnicprofiles/<profile_id>", infrastructure.VNIC_PROFILE_LINKS, _of_other),
    ("/disks/<disk_id>", storage.DISK_LINKS, _of_other),
    ("/storagedomains/<domain_id>", storage.STORAGE_DOMAIN_LINKS, _of_other),
    ("/templates/<template_id>", template.LINKS, _of_other),
    ("/macpools/<pool_id>", {"permissions": "permissions"}, _of_other),
    ("/users/<wanted>", users.LINKS_OF_USERS, _of_user),
]


def collections() -> list[tuple[str, str, Empty]]:
    """Give the address pattern, root element and resource of each, root collections included."""
    roots: list[tuple[str, str, Empty]] = [(f"/{rel}", name, _of_other) for rel, name in COLLECTIONS.items()]
    return roots + [
        (f"{owner}/{rel}", _ROOTS.get(f"{owner}/{rel}", name or rel), resource)
        for owner, links, resource in _OWNERS
        for rel, name in links.items()
    ]
