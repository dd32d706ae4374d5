"""Users with what they may do: who asks has one role on the system, others have roles on VMs and clusters.

Those who may log in are a small table (see `users`), of which nobody sees others here than themselves. Who
has a permission on a VM or a cluster need not be in it, and is named like their id.
"""

from __future__ import annotations

from ovirt_simulator.core.built_in_roles import ROLES
from ovirt_simulator.core.entities import stable_id
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import text
from ovirt_simulator.http.resources.find import present


def user_id(user_name: str) -> str:
    return stable_id("user", user_name)


def list_users(call: Call) -> list[str]:
    return [get_user(call, wanted) for wanted in (user_id(call.user_name), *_holders(call))]


def get_user(call: Call, wanted: str) -> str:
    name = call.user_name if wanted == user_id(call.user_name) else present(_holders(call).get(wanted))
    links = call.links("users", wanted)
    children = (
        links.links({"permissions": "permissions", "roles": "roles", "tags": "tags"}),
        text("principal", name.rpartition("@")[0] or name),
        text("user_name", f"{name}-authz"),
    )
    return links.entity("user", wanted, *children)


def list_groups(call: Call) -> list[str]:
    return [get_group(call, wanted) for wanted in _holders(call, groups=True)]


def get_group(call: Call, wanted: str) -> str:
    name = present(_holders(call, groups=True).get(wanted))
    return call.links("groups", wanted).entity("group", wanted, text("name", name))


def _holders(call: Call, *, groups: bool = False) -> dict[str, str]:
    """Give the names, which are the ids, of users or groups that have permissions."""
    found = call.queries.permissions()
    return {one.holder: one.holder for one in found if one.is_group is groups}


def list_permissions(call: Call, wanted: str) -> list[str]:
    """Give the one permission, on the system: it names a role and a user, and no object."""
    _same(wanted, user_id(call.user_name))
    identity = stable_id("permission", call.user_name)
    return [of_system(call, call.links("permissions", identity))]


def of_system(call: Call, links: Links, *on: str) -> str:
    """Give the permission of who asks, as an object shows it that inherits it: as if it were on that."""
    return links.entity(
        "permission",
        stable_id("permission", call.user_name),
        links.reference("role", "roles", _role_id(call)),
        links.reference("user", "users", user_id(call.user_name)),
        *on,
    )


def list_roles(call: Call) -> list[str]:
    return [get_role(call, role_id) for role_id in (_role_id(call), *ROLES)]


def get_role(call: Call, role_id: str) -> str:
    own = role_id == _role_id(call)
    name = f"RoleOf-{call.user_name}" if own else present(ROLES.get(role_id)).name
    links = call.links("roles", role_id)
    children = (
        links.links({"permits": "permits"}),
        text("administrative", own and call.user.admin),
        text("mutable", False),
        text("name", name),
    )
    return links.entity("role", role_id, *children)


def list_permits(call: Call, role_id: str) -> list[str]:
    """Give the permits of who asks; those of the predefined roles are not told."""
    if role_id in ROLES:
        return []
    _same(role_id, _role_id(call))
    return [get_permit(call, role_id, stable_id("permit", name)) for name in _permits(call)]


def get_permit(call: Call, role_id: str, permit_id: str) -> str:
    _same(role_id, _role_id(call))
    names = {stable_id("permit", name): name for name in _permits(call)}
    name = present(names.get(permit_id))
    return call.links("roles", role_id, "permits", permit_id).entity("permit", permit_id, text("name", name))


def _permits(call: Call) -> list[str]:
    return ["login", *sorted(call.user.permits)]


def _role_id(call: Call) -> str:
    return stable_id("role", call.user_name)


def _same(wanted: str, own: str) -> None:
    present(own if wanted == own else None)
