"""The one permission that who asks has on the whole system, and its role."""

from __future__ import annotations

from ovirt_simulator.core.entities import stable_id, user_id
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.resources.find import present


def list_all(call: Call) -> list[str]:
    """Give the permissions on the whole system: that of who asks, if its role is of type admin."""
    if not call.user.admin:
        return []
    return [of_system(call, call.links("permissions", own_permission_id(call)))]


def get(call: Call, permission_id: str) -> str:
    known = permission_id if call.user.admin and permission_id == own_permission_id(call) else None
    return of_system(call, call.links("permissions", present(known)))


def of_system(call: Call, links: Links, *on: str) -> str:
    """Give the permission of who asks, as an object shows it that inherits it: as if it were on that."""
    return links.entity(
        "permission",
        own_permission_id(call),
        links.reference("role", "roles", own_role_id(call)),
        links.reference("user", "users", user_id(call.user_name)),
        *on,
    )


def own_permission_id(call: Call) -> str:
    return stable_id("permission", call.user_name)


def own_role_id(call: Call) -> str:
    return stable_id("role", call.user_name)
