"""Links and references of an entity, and their expansion in place when `follow` asks for it.

A followed link is a whole GET of the sub-resource for every entity that has it, as in the engine; and so are
its traps: what cannot be followed, or is absent on one entity, fails the whole request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import quote

from ovirt_simulator.http import markup

#: What to expand: names with what to expand below them.
Follow: TypeAlias = "dict[str, Follow]"

#: Renders the resource at an address: given the tag it gets, and what to follow below it.
Expand = Callable[[str, str, Follow], str]

NOTHING: Follow = {}


class FollowError(Exception):
    """A `follow` that the engine fails on: HTTP 500 for the whole request."""


def parse_follow(text: str) -> Follow:
    """Read `nics,disk_attachments.disk` as names with names below them; empty text follows nothing."""
    tree: Follow = {}
    for chain in filter(None, (chain.strip() for chain in text.split(","))):
        level = tree
        for name in chain.split("."):
            level = level.setdefault(name, {})
    return tree


class Links:
    """The links of one entity at `href`: ask for each, and then for the `entity` around them and the rest."""

    def __init__(self, href: str, follow: Follow, expand: Expand) -> None:
        self.href = href
        self._follow = follow
        self._expand = expand
        self._met: set[str] = set()

    def follows(self, attribute: str) -> bool:
        return attribute in self._follow

    def link(self, rel: str, attribute: str | None = None) -> str:
        """Give the link to a sub-collection; `attribute` is what `follow` calls it, if it can be followed."""
        address = f"{self.href}/{rel}"
        if attribute is None or attribute not in self._follow:
            return f'<link href="{address}" rel="{rel}"/>'
        self._met.add(attribute)
        return self._expand(address, attribute, self._follow[attribute])

    def links(self, attributes: Mapping[str, str | None]) -> str:
        """Give all links, from rel to what `follow` calls it."""
        return "\n".join(self.link(rel, attribute) for rel, attribute in attributes.items())

    def actions(self, *rels: str) -> str:
        href = self.href
        return markup.element("actions", *(f'<link href="{href}/{rel}" rel="{rel}"/>' for rel in rels))

    def reference(self, tag: str, collection: str, entity_id: str | None) -> str:
        """Give the reference to another entity; nothing where there is none, which cannot be followed."""
        if entity_id is None:
            return ""
        address = f"{markup.API}/{collection}/{quote(entity_id, safe='')}"
        if tag in self._follow:
            self._met.add(tag)
            return self._expand(address, tag, self._follow[tag])
        return f'<{tag} href="{address}" id="{markup.attribute(entity_id)}"/>'

    def entity(self, tag: str, entity_id: str, *children: str) -> str:
        """Give the whole entity; raise `FollowError` when something was to be followed that is not there."""
        if missing := self._follow.keys() - self._met:
            raise FollowError(f"cannot follow {', '.join(sorted(missing))} of {self.href}")
        return markup.entity(tag, self.href, entity_id, *children)
