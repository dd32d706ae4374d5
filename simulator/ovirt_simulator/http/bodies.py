"""Request bodies: what commands take from them; what the engine cannot read is refused as it refuses it.

What the engine's API has and no command here takes is refused, too, and never quietly left out. What a client
sends for `false`, or empty, asks for nothing and passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec
from lxml import etree

from ovirt_placement.model import AffinityRule
from ovirt_simulator.http.markup import not_simulated, usage

Value = TypeVar("Value")

_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
#: Any element may have these of the entity that it began as, and the engine does not take them from there.
_EVERYWHERE = frozenset({"actions", "link"})


class Body:
    """An element of a request body, and what can be read from it."""

    def __init__(self, node: etree._Element) -> None:
        self._node = node

    @classmethod
    def parse(cls, document: bytes, tag: str) -> Body:
        """Read a document whose root is `tag`; refuse others with a usage message."""
        try:
            node = etree.fromstring(document, _PARSER)
        except etree.XMLSyntaxError:
            raise usage() from None
        if node.tag != tag:
            raise usage()
        return cls(node)

    def check(self, known: Known) -> None:
        """Refuse an element that a command neither takes nor is said to read past."""
        for path in known.unknown(self._node):
            raise not_simulated(f"the element {self._node.tag}/{path}")

    @property
    def id(self) -> str | None:
        return self._node.get("id")

    def child(self, path: str) -> Body | None:
        found = self._node.find(path)
        return None if found is None else Body(found)

    def children(self, path: str) -> list[Body]:
        return [Body(node) for node in self._node.findall(path)]

    def text(self, path: str) -> str | None:
        """Give the text of an element; None when it is absent."""
        found = self._node.find(path)
        return None if found is None else (found.text or "").strip()

    def converted(self, path: str, convert: Callable[[str], Value]) -> Value | None:
        text = self.text(path)
        try:
            return None if text is None else convert(text)
        except (ValueError, KeyError):
            raise usage() from None


class Part(NamedTuple):
    """What a command takes from a body: the elements that count, by their paths, and how they are read.

    What refers to an entity by its id may show more of it, which counts for nothing.
    """

    paths: str
    read: Callable[[Body], Any]


def text(path: str) -> Part:
    return Part(path, lambda body: body.text(path))


def boolean(path: str) -> Part:
    return Part(path, lambda body: body.converted(path, _BOOLEANS.__getitem__))


def integer(path: str) -> Part:
    return Part(path, lambda body: body.converted(path, int))


def number(path: str) -> Part:
    return Part(path, lambda body: body.converted(path, float))


def megabytes(path: str) -> Part:
    return Part(path, lambda body: body.converted(path, lambda octets: int(octets) >> 20))


def id_of(path: str) -> Part:
    """The id of an element that refers to an entity."""
    return Part(path, lambda body: found.id if (found := body.child(path)) is not None else None)


def own_id() -> Part:
    """The id of the body itself, which refers to an entity that is there."""
    return Part("", lambda body: body.id)


def ids(path: str) -> Part:
    """The ids in a list, those without one skipped; None when the list is absent, which keeps it."""
    lists, _, item = path.partition("/")

    def read(body: Body) -> tuple[str, ...] | None:
        found = body.child(lists)
        return None if found is None else tuple(child.id for child in found.children(item) if child.id)

    return Part(path, read)


def pairs(path: str) -> Part:
    """Names with their values, as properties stand in a list; None when the list is absent."""
    lists, _, item = path.partition("/")

    def read(body: Body) -> dict[str, str] | None:
        found = body.child(lists)
        if found is None:
            return None
        return {each.text("name") or "": each.text("value") or "" for each in found.children(item)}

    return Part(f"{path}/name {path}/value", read)


def element(path: str, *below: str) -> Part:
    """An element as it stands, for a command that reads it by itself."""
    return Part(" ".join((path, *(f"{path}/{each}" for each in below))), lambda body: body.child(path))


def whole(*paths: str) -> Part:
    """The whole body, for a command that reads it by itself."""
    return Part(" ".join(paths), lambda body: body)


class RuleEdit(msgspec.Struct, frozen=True):
    """What a body says of a rule of an affinity group; None keeps what is there."""

    enabled: bool | None
    positive: bool | None
    enforcing: bool | None

    def applied(self, present: AffinityRule) -> AffinityRule:
        """Give the rule as the engine maps it.

        `enabled=false` disables; `enabled=true` without `positive` changes nothing.
        """
        return AffinityRule(
            enabled=self.enabled is not False and (present.enabled or self.positive is not None),
            positive=present.positive if self.positive is None else self.positive,
            enforcing=present.enforcing if self.enforcing is None else self.enforcing,
        )


def rule(tag: str, *, legacy: bool = False) -> Part:
    """A rule of an affinity group; with `legacy`, an absent one stands in the group itself."""
    below = (boolean("enabled"), boolean("positive"), boolean("enforcing"))

    def read(body: Body) -> RuleEdit | None:
        part = body.child(tag)
        if part is not None:
            return RuleEdit(*(each.read(part) for each in below))
        edit = RuleEdit(None, *(each.read(body) for each in below[1:]))
        return None if not legacy or edit == RuleEdit(None, None, None) else edit

    paths = [f"{tag}/{each.paths}" for each in below]
    return Part(" ".join([*paths, "positive enforcing"] if legacy else paths), read)


class Known(msgspec.Struct, frozen=True):
    """The elements of a body that a command takes, and those that it reads past with all that is below."""

    takes: frozenset[str]
    past: frozenset[str]
    #: What stands around those that are taken.
    around: frozenset[str]

    def unknown(self, node: etree._Element, above: str = "") -> Iterator[str]:
        """Give the paths of elements that ask for something else."""
        for child in node.iterchildren("*"):
            path = f"{above}{child.tag}"
            if path in self.past or (path in self.takes and child.get("id") is not None):
                continue
            if path in self.takes or path in self.around:
                yield from self.unknown(child, f"{path}/")
            elif child.tag not in _EVERYWHERE and _asks(child):
                yield path


def known(takes: Mapping[str, Part], past: str) -> Known:
    """Give what a command knows of a body; of what refers to an entity by its id, nothing more counts."""
    paths = [path for part in takes.values() for path in part.paths.split()]
    steps = [path.split("/") for path in (*paths, *past.split())]
    around = {"/".join(each[:end]) for each in steps for end in range(1, len(each))}
    return Known(frozenset(paths), frozenset(past.split()), frozenset(around))


def _asks(node: etree._Element) -> bool:
    """Say whether an element asks for anything: it, or what is below it, has an id or a text but `false`."""
    if "id" in node.attrib or (node.text or "").strip().lower() not in ("", "false"):
        return True
    return any(_asks(child) for child in node.iterchildren("*"))
