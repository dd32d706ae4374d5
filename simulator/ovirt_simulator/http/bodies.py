"""Request bodies: XML read strictly enough that what the engine cannot read is refused as it refuses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lxml import etree

from ovirt_placement.model import AffinityRule
from ovirt_simulator.http import guids, limits
from ovirt_simulator.http.answers import fault, usage

Value = TypeVar("Value")

_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)


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

    def check(self, step: str) -> None:
        """Refuse what is not known, as `limits.check_body`."""
        limits.check_body(self._node, step)

    def check_ids(self) -> None:
        """Refuse ids that are no UUIDs."""
        guids.check(self._node)

    @property
    def id(self) -> str | None:
        return self._node.get("id")

    def child(self, tag: str) -> Body | None:
        found = self._node.find(tag)
        return None if found is None else Body(found)

    def children(self, tag: str) -> list[Body]:
        return [Body(node) for node in self._node.findall(tag)]

    def text(self, tag: str) -> str | None:
        """Give the text of a child; None when the child is absent."""
        found = self._node.find(tag)
        return None if found is None else (found.text or "").strip()

    def boolean(self, tag: str) -> bool | None:
        return self._converted(tag, lambda text: {"true": True, "false": False, "1": True, "0": False}[text])

    def integer(self, tag: str) -> int | None:
        return self._converted(tag, int)

    def number(self, tag: str) -> float | None:
        return self._converted(tag, float)

    def child_id(self, tag: str) -> str | None:
        """Give the id of a child that refers to an entity."""
        child = self.child(tag)
        return None if child is None else child.id

    def ids(self, tag: str, item: str) -> list[str] | None:
        """Give the ids in a list, those without one skipped; None when the list is absent, which keeps it."""
        found = self.child(tag)
        return None if found is None else [child.id for child in found.children(item) if child.id]

    def properties(self, tag: str) -> dict[str, str] | None:
        """Give the properties in a list by name; None when the list is absent."""
        found = self.child(tag)
        if found is None:
            return None
        return {item.text("name") or "": item.text("value") or "" for item in found.children("property")}

    def elements(self) -> dict[str, str]:
        """Give the markup of each child by its name."""
        return {
            str(node.tag): etree.tostring(node, encoding="unicode", with_tail=False) for node in self._node
        }

    def _converted(self, tag: str, convert: Callable[[str], Value]) -> Value | None:
        text = self.text(tag)
        if text is None:
            return None
        try:
            return convert(text)
        except (ValueError, KeyError):
            raise fault(400, f"{text} is not a valid {tag}", "Invalid value") from None


def rule(body: Body, tag: str, present: AffinityRule, *, legacy: bool = False) -> AffinityRule | None:
    """Read a rule of an affinity group over the present one; None when the body says nothing of it.

    As the engine maps it: `enabled=false` disables; `enabled=true` without `positive` changes nothing. With
    `legacy`, an absent rule is read from `positive` and `enforcing` next to it, of which the first enables.
    """
    part = body.child(tag)
    source = part or body
    positive, enforcing = source.boolean("positive"), source.boolean("enforcing")
    if part is None and (not legacy or (positive is None and enforcing is None)):
        return None
    disabled = part is not None and part.boolean("enabled") is False
    return AffinityRule(
        enabled=not disabled and (present.enabled or positive is not None),
        positive=present.positive if positive is None else positive,
        enforcing=present.enforcing if enforcing is None else enforcing,
    )
