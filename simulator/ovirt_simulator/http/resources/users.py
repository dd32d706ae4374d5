"""Users and groups, taken from a directory and removed; what they have stands in `held`.

They are who asks, who was taken from a directory, and who has permissions on something.

Those who may log in are a small table (see `users`), of which nobody sees others here than themselves. Who
has a permission on a VM or a cluster need not be in it, and is named like their id.
"""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import element, text
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.resources.searching import known, searched
from ovirt_simulator.http.search.records import User
from ovirt_simulator.http.users import Permit

_LINKS = {"permissions": "permissions", "roles": "roles", "tags": "tags"}
#: Users have these as well, always empty.
LINKS_OF_USERS = {
    "eventsubscriptions": None,
    "groups": "groups",
    "options": "options",
    "sshpublickeys": "ssh_public_keys",
}


def list_users(call: Call) -> list[str]:
    return [_render(call, user) for user in searched(call, "USER", known(call).users)]


def get_user(call: Call, wanted: str) -> str:
    return _render(call, find_user(call, wanted))


def list_groups(call: Call) -> list[str]:
    return [_render_group(call, group) for group in searched(call, "GROUP", known(call).groups)]


def get_group(call: Call, wanted: str) -> str:
    return _render_group(call, find_group(call, wanted))


def post_user(call: Call) -> Response:
    """Take a user from the directory that the name ends in, or that the body names."""
    return _taken(call, call.body("user"), "user_name", is_group=False)


def post_group(call: Call) -> Response:
    return _taken(call, call.body("group"), "name", is_group=True)


def delete_user(call: Call, wanted: str) -> Response:
    find_user(call, wanted)
    return _removed(call, wanted)


def delete_group(call: Call, wanted: str) -> Response:
    find_group(call, wanted)
    return _removed(call, wanted)


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


def find_user(call: Call, wanted: str) -> User:
    return present(next((user for user in known(call).users if user.id == wanted), None))


def find_group(call: Call, wanted: str) -> User:
    return present(next((group for group in known(call).groups if group.id == wanted), None))


def _render(call: Call, user: User) -> str:
    links = call.links("users", user.id)
    return links.entity(
        "user",
        user.id,
        text("name", user.name),
        links.links(_LINKS),
        links.links(LINKS_OF_USERS),
        element("domain", text("name", user.directory)),
        text("principal", user.name),
        text("user_name", user.user_name),
    )


def _render_group(call: Call, group: User) -> str:
    links = call.links("groups", group.id)
    domain = element("domain", text("name", group.directory))
    return links.entity("group", group.id, text("name", group.name), links.links(_LINKS), domain)
