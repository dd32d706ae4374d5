"""Walks the engine's XML in one pass and with few objects: the whole speed of reading an engine is here."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

Element = etree._Element
Children = dict[str, Element]

_MIB = 1024 * 1024
#: More than half of an answer: what may be done with an entity, and where its parts are.
_LINKS = re.compile(rb"<link [^>]*/>")


def root(content: bytes) -> Element:
    """Parse an answer; links, blank text and the index of ids are left out, which saves most of the time."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, huge_tree=True, remove_blank_text=True, collect_ids=False
    )
    return etree.fromstring(_LINKS.sub(b"", content), parser)


def elements(content: bytes, name: str) -> Iterator[Element]:
    """Parse a collection and yield its elements of this name; one entity by itself is yielded too."""
    found = root(content)
    return iter((found,)) if found.tag == name else found.iterchildren(name)


def children(element: Element | None, *names: str) -> Children:
    """Map the wanted names to the child elements that are there."""
    return {} if element is None else {child.tag: child for child in element.iterchildren(*names)}


def text(element: Element | None, default: str = "") -> str:
    return default if element is None else element.text or default


def flag(element: Element | None) -> bool:
    return element is not None and element.text == "true"


def number(element: Element | None, default: int = 0) -> int:
    return default if element is None or not element.text else int(element.text)


def mebibytes(element: Element | None) -> int:
    """Turn bytes into whole MiB; the engine writes whole ones, but for a host's memory."""
    return max(0, number(element)) // _MIB


def reference(element: Element | None) -> str | None:
    """Return the id of a reference such as `<cluster id="..."/>`."""
    return None if element is None else element.get("id")


def references(element: Element | None, name: str) -> tuple[str, ...]:
    """Return the ids within a list of references; an absent list is empty."""
    if element is None:
        return ()
    return tuple(found for child in element.iterchildren(name) if (found := child.get("id")) is not None)


def properties(element: Element | None) -> dict[str, str]:
    """Return the names and values within a list of properties; an absent list is empty."""
    found = {}
    for entry in () if element is None else element.iterchildren("property"):
        fields = children(entry, "name", "value")
        found[text(fields.get("name"))] = text(fields.get("value"))
    return found


def identity(element: Element) -> str:
    """Return an entity's own id."""
    return element.get("id", "")
