"""Users and groups with their permissions, roles and tags.

They are who asks, who was taken from a directory, and who has permissions on something.

Those who may log in are a small table (see `users`), of which nobody sees others here than themselves. Who
has a permission on a VM or a cluster need not be in it, and is named like their id.
"""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core.access import Permission
from ovirt_simulator.core.entities import user_id
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import element, text
from ovirt_simulator.http.resources import assigned_permissions, permissions, roles
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.resources.searching import known, searched
from ovirt_simulator.http.search.records import User
from ovirt_simulator.http.users import Permit

_LINKS = {"permissions": "permissions", "roles": "roles", "tags": "tags"}


def list_users(call: Call) -> list[str]:
    return [_render(call, user) for user in searched(call, "USER", known(call).users)]


def get_user(call: Call, wanted: str) -> str:
    return _render(call, _user(call, wanted))


def list_groups(call: Call) -> list[str]:
    return [_render_group(call, group) for group in searched(call, "GROUP", known(call).groups)]


def get_group(call: Call, wanted: str) -> str:
    return _render_group(call, _group(call, wanted))


def post_user(call: Call) -> Response:
    """Take a user from the directory that the name ends in, or that the body names."""
    return _taken(call, call.body("user"), "user_name", is_group=False)


def post_group(call: Call) -> Response:
    return _taken(call, call.body("group"), "name", is_group=True)


def delete_user(call: Call, wanted: str) -> Response:
    _user(call, wanted)
    return _removed(call, wanted)


def delete_group(call: Call, wanted: str) -> Response:
    _group(call, wanted)
    return _removed(call, wanted)


def list_permissions(call: Call, wanted: str) -> list[str]:
    """Give a user's permissions: of who asks also that on the system, which names no object."""
    found = assigned_permissions.list_of_holder(call, "users", _user(call, wanted).id)
    if wanted != user_id(call.user_name):
        return found
    identity = permissions.own_permission_id(call)
    return [permissions.of_system(call, call.links("users", wanted, "permissions", identity)), *found]


def list_group_permissions(call: Call, wanted: str) -> list[str]:
    return assigned_permissions.list_of_holder(call, "groups", _group(call, wanted).id)


def list_roles(call: Call, wanted: str) -> list[str]:
    """Give the roles of a user: of who asks the one on the system, and those of its permissions."""
    user = _user(call, wanted)
    own = [permissions.own_role_id(call)] if wanted == user_id(call.user_name) else []
    return _roles(call, "users", [*own, *(one.role for one in _held(call, user))], wanted)


def list_group_roles(call: Call, wanted: str) -> list[str]:
    return _roles(call, "groups", [one.role for one in _held(call, _group(call, wanted))], wanted)


def list_tags(call: Call, wanted: str) -> list[str]:
    """Give none: users bear no tags here."""
    _user(call, wanted)
    return []


def list_group_tags(call: Call, wanted: str) -> list[str]:
    """Give none: groups bear no tags here."""
    _group(call, wanted)
    return []


def _taken(call: Call, body: Body, tag: str, *, is_group: bool) -> Response:
    kind, given, domain = "Group" if is_group else "User", body.text(tag), body.child("domain")
    if not given:
        raise incomplete(kind, "name" if is_group else "userName")
    directory = domain and (domain.text("name") or domain.id)
    name, _, behind = given.rpartition("@")
    if not directory and not (name and behind):
        raise incomplete(kind, "domain.id|name")
    if not directory or behind == directory:
        directory, given = behind, name
    call.need(Permit.MANIPULATE_USERS)
    taken = call.engine.directory.add(given, directory, is_group=is_group, caller=call.caller)
    render = _render_group if is_group else _render
    return answers.document(render(call, User(taken.id, taken.name, taken.directory, is_group)), 201)


def _removed(call: Call, wanted: str) -> Response:
    call.need(Permit.MANIPULATE_USERS)
    call.engine.directory.remove(wanted, caller=call.caller)
    return done()


def _roles(call: Call, collection: str, role_ids: list[str], holder: str) -> list[str]:
    known = roles.known_roles(call)
    return [
        roles.render_role(known[role_id], call.links(collection, holder, "roles", role_id))
        for role_id in dict.fromkeys(role_ids)
    ]


def _held(call: Call, holder: User) -> list[Permission]:
    return [one for one in call.queries.permissions() if one.holder == holder.id]


def _user(call: Call, wanted: str) -> User:
    return present(next((user for user in known(call).users if user.id == wanted), None))


def _group(call: Call, wanted: str) -> User:
    return present(next((group for group in known(call).groups if group.id == wanted), None))


def _render(call: Call, user: User) -> str:
    links = call.links("users", user.id)
    return links.entity(
        "user",
        user.id,
        text("name", user.name),
        links.links(_LINKS),
        element("domain", text("name", user.directory)),
        text("principal", user.name),
        text("user_name", user.user_name),
    )


def _render_group(call: Call, group: User) -> str:
    links = call.links("groups", group.id)
    domain = element("domain", text("name", group.directory))
    return links.entity("group", group.id, text("name", group.name), links.links(_LINKS), domain)
