"""Permissions on VMs and clusters: listed with those that they inherit, granted, taken away.

The engine shows an inherited permission as if it were on the object itself; only its id, which it has
wherever it is shown, tells it from one that is.
"""

from __future__ import annotations

from collections import defaultdict

from werkzeug import Response

from ovirt_simulator.core.built_in_roles import ROLES
from ovirt_simulator.core.entities import Permission, Vm, stable_id
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


def _granted(call: Call, vm: str | None = None, cluster: str | None = None) -> Permission:
    """Grant what the body says: a role by id or name, and a user or a group by id."""
    body = call.body("permission")
    role, group = body.child("role"), body.child("group")
    holder = body.child_id("user") if group is None else group.id
    if role is None or holder is None:
        raise incomplete("Permission", "role.id|name" if role is None else "user|group.id")
    call.need(Permit.MANIPULATE_PERMISSIONS)
    return call.engine.access.grant(
        _role_id(role), holder, vm=vm, cluster=cluster, is_group=group is not None, caller=call.caller
    )


def _role_id(role: Body) -> str:
    name = role.text("name")
    return role.id or next((known.id for known in ROLES.values() if known.name == name), name or "")


def _get(call: Call, links: Links, permission_id: str, found: list[Permission]) -> str:
    """Render one permission by itself: then the engine shows what it is really on."""
    if permission_id == stable_id("permission", call.user_name):
        return permissions.of_system(call, links)
    one = present(next((one for one in found if one.id == permission_id), None))
    return _by_itself(one, links)


def _by_itself(one: Permission, links: Links) -> str:
    if one.vm is not None:
        return _permission(one, links, "vm", "vms", one.vm)
    return _permission(one, links, "cluster", "clusters", one.cluster or "")


def _of_vm(call: Call, vm: Vm) -> list[Permission]:
    return [*_by_object(call)[vm.id], *_of_cluster(call, vm.cluster)]


def _of_cluster(call: Call, cluster_id: str) -> list[Permission]:
    return _by_object(call)[cluster_id]


def _by_object(call: Call) -> defaultdict[str, list[Permission]]:
    def compute() -> defaultdict[str, list[Permission]]:
        found = defaultdict(list)
        for one in call.queries.permissions():
            found[one.vm or one.cluster or ""].append(one)
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
    shown[own] = permissions.of_system(call, links, links.reference(tag, collection, owner_id))
    return [shown[identity] for identity in sorted(shown)]


def _permission(one: Permission, links: Links, tag: str, collection: str, owner_id: str) -> str:
    holder = ("group", "groups") if one.is_group else ("user", "users")
    return links.entity(
        "permission",
        one.id,
        links.reference("role", "roles", one.role),
        links.reference(*holder, one.holder),
        links.reference(tag, collection, owner_id),
    )
