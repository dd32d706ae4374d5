"""Permissions as the engine shows them: as if on what inherits them, or by themselves on what they are on."""

from __future__ import annotations

from ovirt_simulator.core.access import Permission
from ovirt_simulator.http.links import Links

#: Where what a permission is on is, by the field of a permission that has its id.
_COLLECTIONS = {
    "vm": "vms",
    "cluster": "clusters",
    "network": "networks",
    "host": "hosts",
    "data_center": "datacenters",
}
#: Of these a permission has no element: the engine's API cannot say that it is on one.
_UNTOLD = frozenset({"network"})


def permission(one: Permission, links: Links, tag: str, collection: str, owner_id: str) -> str:
    """Render a permission as if it were on this."""
    return _entity(one, links, on(links, tag, collection, owner_id))


def by_itself(one: Permission, links: Links) -> str:
    """Render a permission with what it is really on: nothing, if that is the whole system."""
    tag = next((tag for tag in _COLLECTIONS if getattr(one, tag) is not None), None)
    return _entity(one, links, on(links, tag, _COLLECTIONS[tag], getattr(one, tag)) if tag else "")


def on(links: Links, tag: str, collection: str, owner_id: str) -> str:
    """Give the element for what a permission is on."""
    return "" if tag in _UNTOLD else links.reference(tag, collection, owner_id)


def object_id(one: Permission) -> str | None:
    """Give the id of what a permission is on; None if that is the whole system."""
    return next(filter(None, (getattr(one, tag) for tag in _COLLECTIONS)), None)


def _entity(one: Permission, links: Links, where: str) -> str:
    holder = ("group", "groups") if one.is_group else ("user", "users")
    return links.entity(
        "permission",
        one.id,
        links.reference("role", "roles", one.role),
        links.reference(*holder, one.holder),
        where,
    )
