"""Who the engine takes us for, and what that user may do: the root of the API, permissions, roles."""

from __future__ import annotations

from dataclasses import dataclass

from ovirt_placement.engine.parsing import xml

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


def roles(content: bytes) -> dict[str, frozenset[str]]:
    """Read `/roles?follow=permits`: the names of the permits, by the role's id."""
    found = {}
    for element in xml.elements(content, "role"):
        permits = xml.children(element, "permits").get("permits")
        listed = () if permits is None else permits.iterchildren("permit")
        found[xml.identity(element)] = frozenset(
            xml.text(xml.children(permit, "name").get("name")) for permit in listed
        )
    return found
