"""Roles and their permits: the predefined ones, that of who asks, and those that were added."""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core.access import Role
from ovirt_simulator.core.permits import BY_NAME, PERMITS, Permit
from ovirt_simulator.http import answers, users
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import text
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.resources.permissions import own_role_id


def list_roles(call: Call) -> list[str]:
    return [render_role(role, call.links("roles", role.id)) for role in known_roles(call).values()]


def get_role(call: Call, role_id: str) -> str:
    return render_role(_role(call, role_id), call.links("roles", role_id))


def known_roles(call: Call) -> dict[str, Role]:
    """Give all roles by id, that of who asks first, which says what a simulator lets this user do."""
    own = Role(
        id=own_role_id(call),
        name=f"RoleOf-{call.user_name}",
        administrative=call.user.admin,
        permits=tuple(BY_NAME[name].id for name in ["login", *sorted(call.user.permits)]),
        mutable=False,
    )
    return call.once("roles", lambda: {own.id: own} | {role.id: role for role in call.queries.roles()})


def render_role(role: Role, links: Links) -> str:
    """Render a role at an address: its own, or that of a holder's roles."""
    return links.entity(
        "role",
        role.id,
        text("name", role.name),
        text("description", role.description),
        links.links({"permits": "permits"}),
        text("administrative", role.administrative),
        text("mutable", role.mutable),
    )


def post_role(call: Call) -> Response:
    body = call.body("role")
    permits = body.child("permits")
    wanted = [] if permits is None else permits.children("permit")
    missing = [] if body.text("name") else ["name"]
    if permits is None or not all(permit.id for permit in wanted):
        missing.append("permits.id")
    if missing:
        raise incomplete("Role", *missing)
    call.need(users.Permit.MANIPULATE_ROLES)
    role = Role(
        id="",
        name=body.text("name") or "",
        description=body.text("description") or "",
        administrative=bool(body.boolean("administrative")),
        permits=tuple(_permit_id(permit) for permit in wanted),
    )
    role = call.engine.roles.add(role, caller=call.caller)
    return answers.document(render_role(role, call.plain_links("roles", role.id)), 201)


def put_role(call: Call, role_id: str) -> Response:
    _role(call, role_id)
    body = call.body("role")
    call.need(users.Permit.MANIPULATE_ROLES)
    role = call.engine.roles.edit(role_id, body.text("name"), body.text("description"), caller=call.caller)
    return answers.document(render_role(role, call.plain_links("roles", role_id)))


def delete_role(call: Call, role_id: str) -> Response:
    _role(call, role_id)
    call.need(users.Permit.MANIPULATE_ROLES)
    call.engine.roles.remove(role_id, caller=call.caller)
    return done()


def list_permits(call: Call, role_id: str) -> list[str]:
    return [
        _render_permit(PERMITS[permit_id], role_id, call.links("roles", role_id, "permits", permit_id))
        for permit_id in _role(call, role_id).permits
    ]


def get_permit(call: Call, role_id: str, permit_id: str) -> str:
    present(permit_id if permit_id in _role(call, role_id).permits else None)
    return _render_permit(PERMITS[permit_id], role_id, call.links("roles", role_id, "permits", permit_id))


def post_permit(call: Call, role_id: str) -> Response:
    _role(call, role_id)
    body = call.body("permit")
    if body.id is None and not body.text("name"):
        raise incomplete("Permit", "name|id")
    call.need(users.Permit.MANIPULATE_ROLES)
    permit_id = _permit_id(body)
    call.engine.roles.attach(role_id, permit_id, caller=call.caller)
    links = call.plain_links("roles", role_id, "permits", permit_id)
    return answers.document(_render_permit(PERMITS[permit_id], role_id, links), 201)


def delete_permit(call: Call, role_id: str, permit_id: str) -> Response:
    present(permit_id if permit_id in _role(call, role_id).permits else None)
    call.need(users.Permit.MANIPULATE_ROLES)
    call.engine.roles.detach(role_id, permit_id, caller=call.caller)
    return done()


def _role(call: Call, role_id: str) -> Role:
    return present(known_roles(call).get(role_id))


def _permit_id(body: Body) -> str:
    """Read a permit by id or name; one that there is not is refused by a bare line of text."""
    name = (body.text("name") or "").lower()
    identity = body.id or (BY_NAME[name].id if name in BY_NAME else name)
    if identity not in PERMITS:
        raise answers.plain(400, f"{identity} is not a valid permit ID.")
    return identity


def _render_permit(permit: Permit, role_id: str, links: Links) -> str:
    return links.entity(
        "permit",
        permit.id,
        text("name", permit.name),
        text("administrative", permit.administrative),
        links.reference("role", "roles", role_id),
    )
