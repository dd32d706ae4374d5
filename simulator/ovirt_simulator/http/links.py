"""Links and references of an entity, and their expansion in place when `follow` asks for it.

A followed link is a whole GET of the sub-resource for every entity that has it, as in the engine; and so are
its traps: what cannot be followed, or is absent on one entity, fails the whole request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import quote

from ovirt_simulator.http import markup

#: What to expand: names, without underscores and in lower case, with what to expand below them.
Follow: TypeAlias = "dict[str, Follow]"

#: Renders the resource at an address: given the tag it gets, and what to follow below it.
Expand = Callable[[str, str, Follow], str]

NOTHING: Follow = {}


class FollowError(Exception):
    """A `follow` that the engine fails on: HTTP 500 for the whole request."""


def parse_follow(text: str) -> Follow:
    """Read `nics,disk_attachments.disk` as names with names below them; empty text follows nothing.

    Underscores and capitals do not count: the engine's LinkFollower finds links without them, and looks for
    setters ignoring case. Of two spellings of one name the later one is what it leaves in the entity.
    """
    spelled: Follow = {}
    for chain in _split(text, ",") if text else ():
        level = spelled
        for name in _split(chain, "."):
            level = level.setdefault(name, {})
    return _plainly(spelled)


def _plainly(spelled: Follow) -> Follow:
    return {_plain(name): _plainly(below) for name, below in spelled.items()}


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    """Give a name as it is compared; the empty word, which nothing is called, for one the engine fails on."""
    words = _split(name, "_")
    return "".join(words).lower() if all(words) else ""


def _split(text: str, separator: str) -> list[str]:
    """Split as Java does, which drops what is empty at the end."""
    return text.rstrip(separator).split(separator) if text.strip(separator) or not text else []


class Links:
    """The links of one entity at `href`: ask for each, and then for the `entity` around them and the rest."""

    def __init__(self, href: str, follow: Follow, expand: Expand) -> None:
        self.href = href
        self._follow = follow
        self._expand = expand
        self._met: set[str] = set()

    def follows(self, attribute: str) -> bool:
        return _plain(attribute) in self._follow

    def link(self, rel: str, attribute: str | None = None) -> str:
        """Give the link to a sub-collection; `attribute` is what `follow` calls it, if it can be followed."""
        address = f"{self.href}/{rel}"
        if attribute is None or not self.follows(attribute):
            return f'<link href="{address}" rel="{rel}"/>'
        return self._followed(address, attribute)

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
        if self.follows(tag):
            return self._followed(address, tag)
        return f'<{tag} href="{address}" id="{markup.attribute(entity_id)}"/>'

    def entity(self, tag: str, entity_id: str, *children: str) -> str:
        """Give the whole entity; raise `FollowError` when something was to be followed that is not there."""
        if missing := self._follow.keys() - self._met:
            raise FollowError(f"cannot follow {', '.join(sorted(missing))} of {self.href}")
        return markup.entity(tag, self.href, entity_id, *children)

    def _followed(self, address: str, attribute: str) -> str:
        name = _plain(attribute)
        self._met.add(name)
        return self._expand(address, attribute, self._follow[name])
