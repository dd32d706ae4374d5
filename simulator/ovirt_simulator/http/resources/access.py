"""Users, roles and permissions, read: who asks, and who has a permission on something.

Those who may log in are a small table (see `users`), of which nobody sees others here than themselves. Who
has a permission need not be in it, and is named like their id. The engine shows an inherited permission as
if it were on the object itself; only its id distinguishes it from one that is.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
from werkzeug import Response

from ovirt_simulator.core.entities import stable_id, user_id
from ovirt_simulator.core.roles import Permission, Role
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import element, text
from ovirt_simulator.http.resources.find import named, present, visible_clusters, visible_vm
from ovirt_simulator.http.search import searched
from ovirt_simulator.http.users import Permit

_DIRECTORY = "internal-authz"


class User(msgspec.Struct, frozen=True):
    """A user, by id; `name` is the principal, without the directory."""

    id: str
    name: str
    directory: str = _DIRECTORY

    @property
    def user_name(self) -> str:
        """The name as the API shows it; who is named like an id has no profile in it."""
        return f"{self.name}@{self.directory}" if self.id != self.name else f"{self.name}-authz"


def list_users(call: Call) -> list[str]:
    return [_render_user(call, user) for user in searched(call, "users", users(call))]


def get_user(call: Call, user: str) -> str:
    return _render_user(call, _user(call, user))


def users(call: Call) -> list[User]:
    """Who asks, and who has permissions."""
    principal, _, profile = call.user_name.rpartition("@")
    found = {user_id(call.user_name): User(user_id(call.user_name), principal, f"{profile}-authz")}
    for one in call.queries.permissions():
        if not one.is_group:
            found.setdefault(one.holder, User(one.holder, one.holder))
    return list(found.values())


def _user(call: Call, wanted: str) -> User:
    return present(next((user for user in users(call) if user.id == wanted), None))


def _render_user(call: Call, user: User) -> str:
    links = call.links("users", user.id)
    return links.entity(
        "user",
        user.id,
        text("name", user.name),
        links.links({"permissions": "permissions", "roles": "roles"}),
        element("domain", text("name", user.directory)),
        text("principal", user.name),
        text("user_name", user.user_name),
    )


def list_of_user(call: Call, user: str) -> list[str]:
    """Give all permissions; of who asks the first is its own on the whole system."""
    holder = _user(call, user)
    found = [one for one in call.queries.permissions() if one.holder == holder.id]
    shown = [_by_itself(one, call.links("users", user, "permissions", one.id)) for one in found]
    if user != user_id(call.user_name):
        return shown
    return [_of_system(call, call.links("users", user, "permissions", _own_permission(call))), *shown]


def list_of_vm(call: Call, vm_id: str) -> list[str]:
    vm, found = visible_vm(call, vm_id), _by_object(call)
    return _shown(call, "vm", "vms", vm_id, [*found[vm_id], *found[vm.cluster]])


def post_to_vm(call: Call, vm_id: str) -> Response:
    """Grant what the body says on a VM: a role by id or name, to a user or a group by id."""
    present(call.queries.vm(vm_id))
    body = call.body("permission")
    role, group = body.child("role"), body.child("group")
    holder = body.child_id("user") if group is None else group.id
    if role is None or holder is None:
        raise incomplete("Permission", "role.id|name" if role is None else "user|group.id")
    call.need(Permit.MANIPULATE_PERMISSIONS)
    wanted = named(role, call.queries.roles())
    is_group = group is not None
    granted = call.engine.access.grant(wanted, holder, is_group=is_group, caller=call.caller, vm=vm_id)
    links = call.plain_links("vms", vm_id, "permissions", granted.id)
    return answers.document(_by_itself(granted, links), 201)


def list_of_cluster(call: Call, cluster_id: str) -> list[str]:
    present(next((cluster for cluster in visible_clusters(call) if cluster.id == cluster_id), None))
    return _shown(call, "cluster", "clusters", cluster_id, _by_object(call)[cluster_id])


def list_of_all(call: Call) -> list[str]:
    """Give the permissions on the whole system, to users whose role is of type admin."""
    if not call.user.admin:
        return []
    shown = {one.id: _by_itself(one, call.links("permissions", one.id)) for one in _by_object(call)[None]}
    own = _own_permission(call)
    shown[own] = _of_system(call, call.links("permissions", own))
    return [shown[identity] for identity in sorted(shown)]


def _shown(call: Call, tag: str, collection: str, owner_id: str, found: list[Permission]) -> list[str]:
    """Render permissions, in the order of their ids, with those on the whole system."""
    shown = {}
    for one in [*found, *_by_object(call)[None]]:
        links = call.links(collection, owner_id, "permissions", one.id)
        shown[one.id] = _permission(one, links, links.reference(tag, collection, owner_id))
    own = _own_permission(call)
    links = call.links(collection, owner_id, "permissions", own)
    shown[own] = _of_system(call, links, links.reference(tag, collection, owner_id))
    return [shown[identity] for identity in sorted(shown)]


def _by_object(call: Call) -> defaultdict[str | None, list[Permission]]:
    def compute() -> defaultdict[str | None, list[Permission]]:
        found: defaultdict[str | None, list[Permission]] = defaultdict(list)
        for one in call.queries.permissions():
            found[one.vm or one.cluster].append(one)
        return found

    return call.once("permissions", compute)


def _by_itself(one: Permission, links: Links) -> str:
    """Render a permission with what it is really on: nothing, if that is the whole system."""
    on = links.reference("vm", "vms", one.vm) or links.reference("cluster", "clusters", one.cluster)
    return _permission(one, links, on)


def _permission(one: Permission, links: Links, on: str) -> str:
    holder = ("group", "groups") if one.is_group else ("user", "users")
    role = links.reference("role", "roles", one.role)
    return links.entity("permission", one.id, role, links.reference(*holder, one.holder), on)


def _of_system(call: Call, links: Links, on: str = "") -> str:
    """Give the permission of who asks, as an object shows it that inherits it: as if it were on that."""
    role, user = _own_role(call), user_id(call.user_name)
    references = links.reference("role", "roles", role), links.reference("user", "users", user)
    return links.entity("permission", _own_permission(call), *references, on)


def _own_permission(call: Call) -> str:
    return stable_id("permission", call.user_name)


def _own_role(call: Call) -> str:
    return stable_id("role", call.user_name)


def list_roles(call: Call) -> list[str]:
    return [_render_role(role, call.links("roles", role.id)) for role in _roles(call).values()]


def get_role(call: Call, role_id: str) -> str:
    return _render_role(present(_roles(call).get(role_id)), call.links("roles", role_id))


def list_permits(call: Call, role_id: str) -> list[str]:
    role = present(_roles(call).get(role_id))
    return [
        call.links("roles", role_id, "permits", name).entity("permit", name, text("name", name))
        for name in role.permits
    ]


def list_roles_of_user(call: Call, user: str) -> list[str]:
    """Give those that are held on the whole system: of who asks also its own."""
    holder, known = _user(call, user), _roles(call)
    own = [_own_role(call)] if user == user_id(call.user_name) else []
    ids = [*own, *(one.role for one in _by_object(call)[None] if one.holder == holder.id)]
    return [_render_role(known[one], call.links("users", user, "roles", one)) for one in dict.fromkeys(ids)]


def _roles(call: Call) -> dict[str, Role]:
    """Give all roles by id, that of who asks first, which says what a simulator lets this user do."""
    own = Role(
        id=_own_role(call),
        name=f"RoleOf-{call.user_name}",
        administrative=call.user.admin,
        permits=("login", *sorted(call.user.permits)),
    )
    return call.once("roles", lambda: {own.id: own} | {role.id: role for role in call.queries.roles()})


def _render_role(role: Role, links: Links) -> str:
    return links.entity(
        "role",
        role.id,
        text("name", role.name),
        text("description", role.description),
        links.links({"permits": "permits"}),
        text("administrative", role.administrative),
    )
