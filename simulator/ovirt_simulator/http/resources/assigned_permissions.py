"""Permissions on VMs, clusters and what else has them: listed with those inherited, granted, taken away.

The engine shows an inherited permission as if it were on the object itself; only its id, which it has
wherever it is shown, tells it from one that is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from werkzeug import Response

from ovirt_simulator.core.access import Permission
from ovirt_simulator.core.entities import Vm, stable_id
from ovirt_simulator.core.state import Identified
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.resources import permissions
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present, visible_clusters, visible_vm
from ovirt_simulator.http.users import Permit


def list_of_vm(call: Call, vm_id: str) -> list[str]:
    return _shown(call, "vm", "vms", vm_id, _of_vm(call, visible_vm(call, vm_id)))


def list_of_cluster(call: Call, cluster_id: str) -> list[str]:
    present(next((cluster for cluster in visible_clusters(call) if cluster.id == cluster_id), None))
    return _shown(call, "cluster", "clusters", cluster_id, _of_cluster(call, cluster_id))


def list_of_holder(call: Call, collection: str, holder: str) -> list[str]:
    """Give the permissions of a user or group, each with what it is on."""
    return [
        _by_itself(one, call.links(collection, holder, "permissions", one.id))
        for one in call.queries.permissions()
        if one.holder == holder
    ]


def get_of_vm(call: Call, vm_id: str, permission_id: str) -> str:
    found = _of_vm(call, visible_vm(call, vm_id))
    return _get(call, call.links("vms", vm_id, "permissions", permission_id), permission_id, found)


def get_of_cluster(call: Call, cluster_id: str, permission_id: str) -> str:
    links = call.links("clusters", cluster_id, "permissions", permission_id)
    return _get(call, links, permission_id, _of_cluster(call, cluster_id))


def post_to_vm(call: Call, vm_id: str) -> Response:
    present(call.queries.vm(vm_id))
    granted = _granted(call, vm=vm_id)
    links = call.plain_links("vms", vm_id, "permissions", granted.id)
    return answers.document(_permission(granted, links, "vm", "vms", vm_id), 201)


def post_to_cluster(call: Call, cluster_id: str) -> Response:
    present(call.queries.cluster(cluster_id))
    granted = _granted(call, cluster=cluster_id)
    links = call.plain_links("clusters", cluster_id, "permissions", granted.id)
    return answers.document(_permission(granted, links, "cluster", "clusters", cluster_id), 201)


def delete(call: Call, permission_id: str, **_: str) -> Response:
    call.need(Permit.MANIPULATE_PERMISSIONS)
    call.engine.access.revoke(permission_id, caller=call.caller)
    return done()


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
        granted = _granted(call, **{self._tag: owner_id})
        links = call.plain_links(self._collection, owner_id, "permissions", granted.id)
        return answers.document(_permission(granted, links, self._tag, self._collection, owner_id), 201)

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
_COLLECTIONS = {
    "vm": "vms",
    "cluster": "clusters",
    "network": "networks",
    "host": "hosts",
    "data_center": "datacenters",
}
#: Of these a permission has no element: the engine's API cannot say that it is on one.
_UNTOLD = frozenset({"network"})


def _granted(call: Call, **on: str) -> Permission:
    """Grant what the body says: a role by id or name, and a user or a group by id."""
    body = call.body("permission")
    role, group = body.child("role"), body.child("group")
    holder = body.child_id("user") if group is None else group.id
    if role is None or holder is None:
        raise incomplete("Permission", "role.id|name" if role is None else "user|group.id")
    call.need(Permit.MANIPULATE_PERMISSIONS)
    return call.engine.access.grant(
        _role_id(call, role), holder, is_group=group is not None, caller=call.caller, **on
    )


def _role_id(call: Call, role: Body) -> str:
    name = role.text("name")
    return role.id or next((known.id for known in call.queries.roles() if known.name == name), name or "")


def _get(call: Call, links: Links, permission_id: str, found: list[Permission]) -> str:
    """Render one permission by itself: then the engine shows what it is really on."""
    if permission_id == stable_id("permission", call.user_name):
        return permissions.of_system(call, links)
    one = present(next((one for one in found if one.id == permission_id), None))
    return _by_itself(one, links)


def _by_itself(one: Permission, links: Links) -> str:
    return _permission(one, links, *_object(one))


def _object(one: Permission) -> tuple[str, str, str]:
    """Give what a permission is on: the element for it, its collection, and its id."""
    on = ((tag, collection, getattr(one, tag)) for tag, collection in _COLLECTIONS.items())
    return next(found for found in on if found[2] is not None)


def _of_vm(call: Call, vm: Vm) -> list[Permission]:
    return [*_by_object(call)[vm.id], *_of_cluster(call, vm.cluster)]


def _of_cluster(call: Call, cluster_id: str) -> list[Permission]:
    """Give those on a cluster, with those on its data center."""
    cluster, found = call.queries.cluster(cluster_id), _by_object(call)
    center = cluster and cluster.data_center
    return [*found[cluster_id], *(found[center] if center else ())]


def _by_object(call: Call) -> defaultdict[str, list[Permission]]:
    def compute() -> defaultdict[str, list[Permission]]:
        found = defaultdict(list)
        for one in call.queries.permissions():
            found[_object(one)[2]].append(one)
        return found

    return call.once("permissions", compute)


def _shown(call: Call, tag: str, collection: str, owner_id: str, found: list[Permission]) -> list[str]:
    """Render permissions, in the order of their ids, with that of who asks on the whole system."""
    shown = {}
    for one in found:
        links = call.links(collection, owner_id, "permissions", one.id)
        shown[one.id] = _permission(one, links, tag, collection, owner_id)
    own = stable_id("permission", call.user_name)
    links = call.links(collection, owner_id, "permissions", own)
    on = "" if tag in _UNTOLD else links.reference(tag, collection, owner_id)
    shown[own] = permissions.of_system(call, links, on)
    return [shown[identity] for identity in sorted(shown)]


def _permission(one: Permission, links: Links, tag: str, collection: str, owner_id: str) -> str:
    holder = ("group", "groups") if one.is_group else ("user", "users")
    return links.entity(
        "permission",
        one.id,
        links.reference("role", "roles", one.role),
        links.reference(*holder, one.holder),
        "" if tag in _UNTOLD else links.reference(tag, collection, owner_id),
    )
