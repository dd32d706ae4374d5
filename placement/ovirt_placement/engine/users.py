"""Who may do what: the user that the engine takes us for, permissions and roles, and a person's rights.

A person's rights are read in their own name: the engine then adds what comes by groups of the directory and
by Everyone.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from lxml import etree

from ovirt_placement.engine import xml
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.connection.sso import Refused, UserTokens
from ovirt_placement.model import Snapshot

#: What a permission may be on; without any of them it is on the whole system.
_OBJECTS = ("cluster", "data_center", "disk", "host", "storage_domain", "template", "vm", "vm_pool")


@dataclass(frozen=True)
class Root:
    """The root of the API."""

    #: As in (4, 5); None if it does not say.
    version: tuple[int, int] | None
    #: The engine's clock, in ISO 8601.
    time: str
    user_id: str | None
    user_name: str


@dataclass(frozen=True)
class Permission:
    """A role that the user has, on one object or on the system."""

    role: str
    #: The kind of object and its id; None for the system.
    on: tuple[str, str] | None


class Role(NamedTuple):
    """Whether it is of type admin, and the names of its permits."""

    administrative: bool = False
    permits: frozenset[str] = frozenset()


def parse_root(content: bytes) -> Root:
    """Read `/`."""
    fields = xml.children(xml.root(content), "product_info", "time", "authenticated_user")
    version = xml.children(
        xml.children(fields.get("product_info"), "version").get("version"), "major", "minor"
    )
    user = fields.get("authenticated_user")
    return Root(
        version=(xml.number(version["major"]), xml.number(version.get("minor")))
        if "major" in version
        else None,
        time=xml.text(fields.get("time")),
        user_id=xml.reference(user),
        user_name=xml.text(xml.children(user, "user_name").get("user_name")),
    )


def user_names(content: bytes) -> dict[str, str]:
    """Read `/users`: ids by the name with the authorization provider."""
    return {
        xml.text(xml.children(element, "user_name").get("user_name")): xml.identity(element)
        for element in xml.elements(content, "user")
    }


def permissions(content: bytes) -> tuple[Permission, ...]:
    """Read `/users/{id}/permissions`."""
    found = []
    for element in xml.elements(content, "permission"):
        fields = xml.children(element, "role", *_OBJECTS)
        on = next(((kind, fields[kind].get("id", "")) for kind in _OBJECTS if kind in fields), None)
        found.append(Permission(xml.reference(fields.get("role")) or "", on))
    return tuple(found)


def roles(content: bytes) -> dict[str, Role]:
    """Read `/roles?follow=permits`, by the role's id."""
    found = {}
    for element in xml.elements(content, "role"):
        fields = xml.children(element, "administrative", "permits")
        listed = fields["permits"].iterchildren("permit") if "permits" in fields else ()
        permits = frozenset(xml.text(xml.children(permit, "name").get("name")) for permit in listed)
        found[xml.identity(element)] = Role(xml.flag(fields.get("administrative")), permits)
    return found


#: Where something is granted: kind and id, None for the whole system.
Place = tuple[str, str] | None


@dataclass(frozen=True)
class Rights:
    """A person and what is granted to them."""

    user_id: str
    user_name: str
    #: Whether any role of theirs is of type admin: then the portal shows hosts and groups, too.
    administrator: bool
    permits: dict[Place, frozenset[str]] = field(default_factory=dict)

    def may(self, permit: str, cluster: str, snapshot: Snapshot) -> bool:
        """Whether something is permitted on a cluster: granted on it, its data center or the system."""
        known = snapshot.cluster_by_id.get(cluster)
        if known is None:
            return False
        places: list[Place] = [None, ("cluster", cluster)]
        if known.data_center is not None:
            places.append(("data_center", known.data_center))
        return any(permit in self.permits.get(place, ()) for place in places)


def read_rights(tokens: UserTokens, token: str) -> Rights:
    """Ask the engine who this is and what they may do; raises `Refused` and `EngineAway`."""
    try:
        root = parse_root(tokens.get(token, ""))
        if root.user_id is None:
            raise Refused("the engine does not say whose token this is")
        held = permissions(tokens.get(token, f"/users/{root.user_id}/permissions"))
        name = root.user_name or _name(tokens, token, root.user_id)
        roles = _roles(tokens, token)
    except (etree.XMLSyntaxError, xml.Unexpected, xml.TooLarge):
        raise EngineAway("what answers sends something else than an engine", request_sent=True) from None
    permits: dict[Place, frozenset[str]] = {}
    for one in held:
        permits[one.on] = permits.get(one.on, frozenset()) | roles.get(one.role, Role()).permits
    return Rights(
        user_id=root.user_id,
        user_name=name,
        administrator=any(roles.get(one.role, Role()).administrative for one in held),
        permits=permits,
    )


def _name(tokens: UserTokens, token: str, user_id: str) -> str:
    """The name of a user of whom the root says the id alone; the id, where that is not to be read either."""
    try:
        user = xml.root(tokens.get(token, f"/users/{user_id}"))
    except Refused:
        return user_id
    return xml.text(xml.children(user, "user_name").get("user_name")) or user_id


def _roles(tokens: UserTokens, token: str) -> dict[str, Role]:
    """The roles by id; none to who is no admin, who may not read them all."""
    try:
        return roles(tokens.get(token, "/roles", follow="permits"))
    except Refused:
        return {}
