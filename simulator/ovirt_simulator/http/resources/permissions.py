"""What the user who asks may do, as the engine shows it: one role on the system, with the user's permits.

The simulator's users are a small table (see `users`), so nobody sees others here than themselves.
"""

from __future__ import annotations

from ovirt_simulator.core.entities import stable_id
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import text
from ovirt_simulator.http.resources.find import present


def user_id(user_name: str) -> str:
    return stable_id("user", user_name)


def list_users(call: Call) -> list[str]:
    return [get_user(call, user_id(call.user_name))]


def get_user(call: Call, wanted: str) -> str:
    _same(wanted, user_id(call.user_name))
    links = call.links("users", wanted)
    children = (
        links.links({"permissions": "permissions", "roles": "roles", "tags": "tags"}),
        text("principal", call.user_name.rpartition("@")[0]),
        text("user_name", f"{call.user_name}-authz"),
    )
    return links.entity("user", wanted, *children)


def list_permissions(call: Call, wanted: str) -> list[str]:
    """Give the one permission, on the system: it names a role and a user, and no object."""
    _same(wanted, user_id(call.user_name))
    links = call.links("permissions", stable_id("permission", call.user_name))
    role, user = links.reference("role", "roles", _role_id(call)), links.reference("user", "users", wanted)
    return [links.entity("permission", stable_id("permission", call.user_name), role, user)]


def list_roles(call: Call) -> list[str]:
    return [get_role(call, _role_id(call))]


def get_role(call: Call, role_id: str) -> str:
    _same(role_id, _role_id(call))
    links = call.links("roles", role_id)
    children = (
        links.links({"permits": "permits"}),
        text("administrative", call.user.admin),
        text("mutable", False),
        text("name", f"RoleOf-{call.user_name}"),
    )
    return links.entity("role", role_id, *children)


def list_permits(call: Call, role_id: str) -> list[str]:
    _same(role_id, _role_id(call))
    permits = [call.links("roles", role_id, "permits", stable_id("permit", name)) for name in _permits(call)]
    return [
        links.entity("permit", stable_id("permit", name), text("name", name))
        for links, name in zip(permits, _permits(call), strict=True)
    ]


def _permits(call: Call) -> list[str]:
    return ["login", *sorted(call.user.permits)]


def _role_id(call: Call) -> str:
    return stable_id("role", call.user_name)


def _same(wanted: str, own: str) -> None:
    present(own if wanted == own else None)
