"""Permissions on the whole system: that of who asks, and those that were granted.

By its id any permission is found here, as in the engine. That of who asks follows from a small table (see
`users`), has a role of its own, and stays.
"""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core.access import Permission
from ovirt_simulator.core.entities import stable_id, user_id
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete, not_simulated
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import permission
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.users import Permit


def list_all(call: Call) -> list[str]:
    """Give the permissions on the whole system, to users whose role is of type admin."""
    if not call.user.admin:
        return []
    known = [one for one in call.queries.permissions() if permission.object_id(one) is None]
    shown = {one.id: permission.by_itself(one, call.links("permissions", one.id)) for one in known}
    own = own_permission_id(call)
    shown[own] = of_system(call, call.links("permissions", own))
    return [shown[identity] for identity in sorted(shown)]


def get(call: Call, permission_id: str) -> str:
    known = call.queries.permissions() if call.user.admin else ()
    links = call.links("permissions", permission_id)
    if call.user.admin and permission_id == own_permission_id(call):
        return of_system(call, links)
    return permission.by_itself(present(next((one for one in known if one.id == permission_id), None)), links)


def post(call: Call) -> Response:
    granted = grant(call)
    return answers.document(permission.by_itself(granted, call.plain_links("permissions", granted.id)), 201)


def delete(call: Call, permission_id: str, *, user: str | None = None, **_: str) -> Response:
    """Take any permission away; at the address of a user, only its own."""
    call.need(Permit.MANIPULATE_PERMISSIONS)
    if permission_id == own_permission_id(call):
        raise not_simulated("how to take away what a user may do here, which follows from who logs in")
    call.engine.access.revoke(permission_id, user=user, caller=call.caller)
    return done()


def grant(call: Call, **on: str) -> Permission:
    """Grant what the body says: a role by id or name, and a user or a group by id."""
    body = call.body("permission")
    group = body.child("group")
    holder = body.child_id("user") if group is None else group.id
    role_id = named_role(call, body)
    if holder is None:
        raise incomplete("Permission", "user|group.id")
    call.need(Permit.MANIPULATE_PERMISSIONS)
    return call.engine.access.grant(role_id, holder, is_group=group is not None, caller=call.caller, **on)


def named_role(call: Call, body: Body) -> str:
    """Give the id of the role that the body of a permission names by id or name."""
    role = body.child("role")
    if role is None:
        raise incomplete("Permission", "role.id|name")
    name = role.text("name")
    return role.id or next((known.id for known in call.queries.roles() if known.name == name), name or "")


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
