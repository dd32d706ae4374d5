"""Permissions on VMs, clusters and what else has them: listed with those inherited, and granted.

The engine shows an inherited permission as if it were on the object itself; only its id, which it has
wherever it is shown, distinguishes it from one that is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from werkzeug import Response

from ovirt_simulator.core.access import Permission
from ovirt_simulator.core.entities import Vm
from ovirt_simulator.core.state import Identified
from ovirt_simulator.http import answers
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render.permission import by_itself, object_id, on, permission
from ovirt_simulator.http.resources import permissions
from ovirt_simulator.http.resources.find import present, visible_clusters, visible_vm


def list_of_vm(call: Call, vm_id: str) -> list[str]:
    return _shown(call, "vm", "vms", vm_id, _of_vm(call, visible_vm(call, vm_id)))


def list_of_cluster(call: Call, cluster_id: str) -> list[str]:
    present(next((cluster for cluster in visible_clusters(call) if cluster.id == cluster_id), None))
    return _shown(call, "cluster", "clusters", cluster_id, _of_cluster(call, cluster_id))


def get_of_vm(call: Call, vm_id: str, permission_id: str) -> str:
    found = _of_vm(call, visible_vm(call, vm_id))
    return _get(call, call.links("vms", vm_id, "permissions", permission_id), permission_id, found)


def get_of_cluster(call: Call, cluster_id: str, permission_id: str) -> str:
    links = call.links("clusters", cluster_id, "permissions", permission_id)
    return _get(call, links, permission_id, _of_cluster(call, cluster_id))


def post_to_vm(call: Call, vm_id: str) -> Response:
    present(call.queries.vm(vm_id))
    granted = permissions.grant(call, vm=vm_id)
    links = call.plain_links("vms", vm_id, "permissions", granted.id)
    return answers.document(permission(granted, links, "vm", "vms", vm_id), 201)


def post_to_cluster(call: Call, cluster_id: str) -> Response:
    present(call.queries.cluster(cluster_id))
    granted = permissions.grant(call, cluster=cluster_id)
    links = call.plain_links("clusters", cluster_id, "permissions", granted.id)
    return answers.document(permission(granted, links, "cluster", "clusters", cluster_id), 201)


class PermissionsOf:
    """Those on objects of one kind besides VMs and clusters."""

    def __init__(self, tag: str, collection: str, known: Callable[[Call], Iterable[Identified]]) -> None:
        self._tag = tag
        self._collection = collection
        self._known = known

    def list_all(self, call: Call, **address: str) -> list[str]:
        owner_id = self._owner(call, address)
        return _shown(call, self._tag, self._collection, owner_id, self._found(call, owner_id))

    def get(self, call: Call, permission_id: str, **address: str) -> str:
        owner_id = self._owner(call, address)
        links = call.links(self._collection, owner_id, "permissions", permission_id)
        return _get(call, links, permission_id, self._found(call, owner_id))

    def post(self, call: Call, **address: str) -> Response:
        owner_id = self._owner(call, address)
        granted = permissions.grant(call, **{self._tag: owner_id})
        links = call.plain_links(self._collection, owner_id, "permissions", granted.id)
        return answers.document(permission(granted, links, self._tag, self._collection, owner_id), 201)

    def _owner(self, call: Call, address: Mapping[str, str]) -> str:
        (owner_id,) = address.values()
        known = () if call.filtered else self._known(call)
        return present(next((one.id for one in known if one.id == owner_id), None))

    def _found(self, call: Call, owner_id: str) -> list[Permission]:
        host = call.queries.host(owner_id)
        inherited = [] if host is None else _of_cluster(call, host.cluster)
        return [*_by_object(call)[owner_id], *inherited]


OF_HOST = PermissionsOf("host", "hosts", lambda call: call.queries.hosts())
OF_DATA_CENTER = PermissionsOf("data_center", "datacenters", lambda call: call.queries.data_centers())
OF_NETWORK = PermissionsOf("network", "networks", lambda call: call.queries.networks())


def _get(call: Call, links: Links, permission_id: str, found: list[Permission]) -> str:
    """Render one permission by itself: then the engine shows what it is really on."""
    if permission_id == permissions.own_permission_id(call):
        return permissions.of_system(call, links)
    known = [*found, *_by_object(call)[None]]
    one = present(next((one for one in known if one.id == permission_id), None))
    return by_itself(one, links)


def _of_vm(call: Call, vm: Vm) -> list[Permission]:
    return [*_by_object(call)[vm.id], *_of_cluster(call, vm.cluster)]


def _of_cluster(call: Call, cluster_id: str) -> list[Permission]:
    """Give those on a cluster, with those on its data center."""
    cluster, found = call.queries.cluster(cluster_id), _by_object(call)
    center = cluster and cluster.data_center
    return [*found[cluster_id], *(found[center] if center else ())]


def _by_object(call: Call) -> defaultdict[str | None, list[Permission]]:
    def compute() -> defaultdict[str | None, list[Permission]]:
        found: defaultdict[str | None, list[Permission]] = defaultdict(list)
        for one in call.queries.permissions():
            found[object_id(one)].append(one)
        return found

    return call.once("permissions", compute)


def _shown(call: Call, tag: str, collection: str, owner_id: str, found: list[Permission]) -> list[str]:
    """Render permissions, in the order of their ids, with those on the whole system."""
    shown = {}
    for one in [*found, *_by_object(call)[None]]:
        links = call.links(collection, owner_id, "permissions", one.id)
        shown[one.id] = permission(one, links, tag, collection, owner_id)
    own = permissions.own_permission_id(call)
    links = call.links(collection, owner_id, "permissions", own)
    shown[own] = permissions.of_system(call, links, on(links, tag, collection, owner_id))
    return [shown[identity] for identity in sorted(shown)]
