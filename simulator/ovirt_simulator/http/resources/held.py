"""What one user or group has: permissions, roles, which are those on the whole system, and tags."""

from __future__ import annotations

from collections.abc import Callable

from werkzeug import Response

from ovirt_simulator.core.access import Permission, Principal, Role
from ovirt_simulator.core.entities import Tag, user_id
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import infrastructure, permission
from ovirt_simulator.http.resources import permissions, roles, tags, users
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.search.records import User
from ovirt_simulator.http.users import Permit

#: What a permission can be granted on from here; of several in a body the first counts, as in the engine.
_OBJECTS = ("data_center", "cluster", "host", "vm")
_MISSING = "dataCenter|cluster|host|storageDomain|vm|vmPool|template.id"


class HeldBy:
    """The resources below users, or below groups."""

    def __init__(self, collection: str, find: Callable[[Call, str], User]) -> None:
        self._collection = collection
        self._find = find

    def list_permissions(self, call: Call, wanted: str) -> list[str]:
        """Give all; of who asks the first is its own on the whole system."""
        found, own = self._held(call, wanted), self._own(call, wanted, permissions.own_permission_id)
        return [
            *(permissions.of_system(call, self._links(call, wanted, identity)) for identity in own),
            *(permission.by_itself(one, self._links(call, wanted, one.id)) for one in found),
        ]

    def get_permission(self, call: Call, wanted: str, permission_id: str) -> str:
        links = self._links(call, wanted, permission_id)
        if permission_id in self._own(call, wanted, permissions.own_permission_id):
            return permissions.of_system(call, links)
        found = (one for one in self._held(call, wanted) if one.id == permission_id)
        return permission.by_itself(present(next(found, None)), links)

    def post_permission(self, call: Call, wanted: str) -> Response:
        """Grant the role that the body names on the object that it names, which the engine asks for."""
        holder = self._find(call, wanted)
        body = call.body("permission")
        role_id, on = permissions.named_role(call, body), _object(body)
        call.need(Permit.MANIPULATE_PERMISSIONS)
        granted = call.engine.access.grant(
            role_id, holder.id, is_group=holder.is_group, caller=call.caller, **on
        )
        links = call.plain_links(self._collection, wanted, "permissions", granted.id)
        return answers.document(permission.by_itself(granted, links), 201)

    def delete_permission(self, call: Call, wanted: str, permission_id: str) -> Response:
        holder = self._find(call, wanted)
        user = None if holder.is_group else holder.id
        return permissions.delete(call, permission_id, user=user)

    def list_roles(self, call: Call, wanted: str) -> list[str]:
        """Give those that are held on the whole system: of who asks also its own."""
        known, found = roles.known_roles(call), self._held(call, wanted)
        ids = [
            *self._own(call, wanted, permissions.own_role_id),
            *(one.role for one in found if permission.object_id(one) is None),
        ]
        return [self._role(call, wanted, known[identity]) for identity in dict.fromkeys(ids)]

    def get_role(self, call: Call, wanted: str, role_id: str) -> str:
        """Give any role, whether it is held or not, as the engine does."""
        self._find(call, wanted)
        return self._role(call, wanted, present(roles.known_roles(call).get(role_id)))

    def list_permits(self, call: Call, wanted: str, role_id: str) -> list[str]:
        self._find(call, wanted)
        return roles.list_permits(call, role_id)

    def delete_role(self, call: Call, wanted: str, role_id: str) -> Response:
        """Remove the role itself, which is what the engine does."""
        self._find(call, wanted)
        return roles.delete_role(call, role_id)

    def list_tags(self, call: Call, wanted: str) -> list[str]:
        held = tags.named(call, self._find(call, wanted).tags)
        return [self._tag(call, wanted, tag) for tag in held.values()]

    def get_tag(self, call: Call, wanted: str, tag_id: str) -> str:
        held = tags.named(call, self._find(call, wanted).tags)
        return self._tag(call, wanted, present(held.get(tag_id)))

    def post_tag(self, call: Call, wanted: str) -> Response:
        holder = _principal(self._find(call, wanted))
        tag = call.engine.tags.attach_to_holder(tags.wanted_tag(call), holder, caller=call.caller)
        links = call.plain_links(self._collection, wanted, "tags", tag.id)
        return answers.document(infrastructure.tag(tag, links), 201)

    def delete_tag(self, call: Call, wanted: str, tag_id: str) -> Response:
        holder = self._find(call, wanted)
        present(tags.named(call, holder.tags).get(tag_id))
        call.need(Permit.TAG_MANAGEMENT)
        call.engine.tags.detach_from_holder(tag_id, _principal(holder), caller=call.caller)
        return done()

    def _tag(self, call: Call, wanted: str, tag: Tag) -> str:
        return infrastructure.tag(tag, call.links(self._collection, wanted, "tags", tag.id))

    def _links(self, call: Call, wanted: str, permission_id: str) -> Links:
        return call.links(self._collection, wanted, "permissions", permission_id)

    def _role(self, call: Call, wanted: str, role: Role) -> str:
        return roles.render_role(role, call.links(self._collection, wanted, "roles", role.id))

    def _held(self, call: Call, wanted: str) -> list[Permission]:
        holder = self._find(call, wanted)
        return [one for one in call.queries.permissions() if one.holder == holder.id]

    def _own(self, call: Call, wanted: str, identity: Callable[[Call], str]) -> list[str]:
        return [identity(call)] if wanted == user_id(call.user_name) else []


def _principal(holder: User) -> Principal:
    return Principal(holder.id, holder.name, holder.directory, holder.is_group)


def _object(body: Body) -> dict[str, str]:
    for tag in _OBJECTS:
        identity = body.child_id(tag)
        if identity is not None:
            return {tag: identity}
    raise incomplete("Permission", _MISSING)


OF_USER = HeldBy("users", users.find_user)
OF_GROUP = HeldBy("groups", users.find_group)
