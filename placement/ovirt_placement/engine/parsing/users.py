"""Who may do what: the user that the engine takes us for, permissions and roles; and who uses a VM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ovirt_placement.engine.parsing import xml

#: The engine's predefined roles (its 00500_insert_roles.sql) that make a person the user of a VM.
USER_ROLE = "00000000-0000-0000-0001-000000000001"
USER_VM_MANAGER = "def00006-0000-0000-0000-def000000006"

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


class Grant(NamedTuple):
    """A permission that makes a person the user of a VM, as the VM shows it: it may be an inherited one."""

    id: str
    #: The id of the role, one of the two above.
    role: str
    #: The id of the user or group.
    holder: str


def root(content: bytes) -> Root:
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


def grants(element: xml.Element | None) -> tuple[Grant, ...]:
    """Read those permissions of a VM that make a person its user; absent, there are none."""
    found = []
    for entry in () if element is None else element.iterchildren("permission"):
        fields = xml.children(entry, "role", "user", "group")
        role = xml.reference(fields.get("role")) or ""
        holder = xml.reference(fields.get("user", fields.get("group")))
        if role in {USER_ROLE, USER_VM_MANAGER} and holder is not None:
            found.append(Grant(xml.identity(entry), role, holder))
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
