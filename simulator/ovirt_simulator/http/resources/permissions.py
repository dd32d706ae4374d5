"""Roles and their permits, and the one permission that who asks has on the whole system."""

from __future__ import annotations

from ovirt_simulator.core.built_in_roles import ROLES
from ovirt_simulator.core.entities import stable_id, user_id
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import text
from ovirt_simulator.http.resources.find import present


def of_system(call: Call, links: Links, *on: str) -> str:
    """Give the permission of who asks, as an object shows it that inherits it: as if it were on that."""
    return links.entity(
        "permission",
        own_permission_id(call),
        links.reference("role", "roles", own_role_id(call)),
        links.reference("user", "users", user_id(call.user_name)),
        *on,
    )


def list_roles(call: Call) -> list[str]:
    return [get_role(call, role_id) for role_id in (own_role_id(call), *ROLES)]


def get_role(call: Call, role_id: str) -> str:
    return render_role(call, role_id, call.links("roles", role_id))


def render_role(call: Call, role_id: str, links: Links) -> str:
    """Render a role at an address: its own, or that of a holder's roles."""
    own = role_id == own_role_id(call)
    name = f"RoleOf-{call.user_name}" if own else present(ROLES.get(role_id)).name
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
    _same(role_id, own_role_id(call))
    return [get_permit(call, role_id, stable_id("permit", name)) for name in _permits(call)]


def get_permit(call: Call, role_id: str, permit_id: str) -> str:
    _same(role_id, own_role_id(call))
    names = {stable_id("permit", name): name for name in _permits(call)}
    name = present(names.get(permit_id))
    return call.links("roles", role_id, "permits", permit_id).entity("permit", permit_id, text("name", name))


def _permits(call: Call) -> list[str]:
    return ["login", *sorted(call.user.permits)]


def own_permission_id(call: Call) -> str:
    return stable_id("permission", call.user_name)


def own_role_id(call: Call) -> str:
    return stable_id("role", call.user_name)


def _same(wanted: str, own: str) -> None:
    present(own if wanted == own else None)
