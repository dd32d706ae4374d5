"""Walks the engine's XML in one pass and with few objects: the whole speed of reading an engine is here."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeVar, get_type_hints

from lxml import etree

from ovirt_service.errors import UserError
from ovirt_service.text import unbroken

Element = etree._Element
Children = dict[str, Element]
_Record = TypeVar("_Record")

#: What stands for a collection that the engine does not have.
EMPTY: Final = "none"

_MIB = 1024 * 1024
#: More than half of an answer: what may be done with an entity, and where its parts are.
_LINKS = re.compile(rb"<link [^>]*/>")
#: Elements and attributes, each of which takes a hundred bytes or more; ten thousand VMs with all that hangs
#: on them are 1.5 million.
_MOST_NODES: Final = 10_000_000
#: What every format that we write can hold.
_LARGEST: Final = 2**63 - 1


class TooLarge(UserError):
    """An answer would take more memory than any engine's does."""


class Unexpected(UserError):
    """An answer is XML, but not what was asked for."""


def root(content: bytes) -> Element:
    """Parse an answer; links, blank text and the index of ids are left out, which saves most of the time.

    Raises `TooLarge`, and `etree.XMLSyntaxError` for what is no XML.
    """
    content = _LINKS.sub(b"", content)
    if content.count(b"<") + content.count(b"=") > _MOST_NODES:
        raise TooLarge(f"more than {_MOST_NODES:,} elements and attributes")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, huge_tree=True, remove_blank_text=True, collect_ids=False
    )
    return etree.fromstring(content, parser)


def elements(content: bytes, name: str) -> Iterator[Element]:
    """Parse a collection and yield its elements of this name; one entity by itself is yielded too.

    Raises `Unexpected` for another collection, or a page: that it holds none of these would mean nothing.
    """
    found = root(content)
    if found.tag == name:
        return iter((found,))
    if found.tag not in (f"{name.removesuffix('y')}ies" if name.endswith("y") else f"{name}s", EMPTY):
        raise Unexpected(f"<{found.tag}> came in place of {name} elements")
    return found.iterchildren(name)


def entity(content: bytes, name: str) -> Element:
    """Parse an answer that is one entity. Raises `Unexpected` for anything else."""
    for found in elements(content, name):
        return found
    raise Unexpected(f"the answer holds no {name}")


def children(element: Element | None, *names: str) -> Children:
    """Map the wanted names to the child elements that are there."""
    return {} if element is None else {child.tag: child for child in element.iterchildren(*names)}


def text(element: Element | None, default: str = "") -> str:
    """The text of an element, on one line."""
    return default if element is None else unbroken(element.text or default)


def flag(element: Element | None) -> bool:
    return element is not None and element.text == "true"


def number(element: Element | None, default: int = 0) -> int:
    if element is None or not element.text:
        return default
    return whole(element.text, f"<{element.tag}>")


def whole(written: str, what: str) -> int:
    """A whole number of 64 bits, in which the engine counts; raises `Unexpected` for anything else."""
    try:
        found = int(written)
    except ValueError:  # Python reads no more than some thousand digits
        raise Unexpected(f"{what} holds {written!r:.80}, no whole number") from None
    if abs(found) > _LARGEST:
        raise Unexpected(f"{what} holds a number of {len(written)} digits")
    return found


def product(*elements: Element | None) -> int:
    """Multiply numbers; one that is absent is 1."""
    found = math.prod(number(element, 1) for element in elements)
    if abs(found) > _LARGEST:
        raise Unexpected("a product of numbers is too large")
    return found


def decimal(element: Element | None, default: float = 0.0) -> float:
    if element is None or not element.text:
        return default
    with suppress(ValueError):
        if math.isfinite(found := float(element.text)):
            return found
    raise Unexpected(f"<{element.tag}> holds {element.text!r:.80}, no number")


def moment(element: Element | None) -> datetime | None:
    """A time with its offset from UTC; None where there is none."""
    if element is None or not element.text:
        return None
    with suppress(ValueError):
        if (found := datetime.fromisoformat(element.text)).tzinfo is not None:
            return found
    raise Unexpected(f"<{element.tag}> holds {element.text!r:.80}, no time")


def mebibytes(element: Element | None) -> int:
    """Turn bytes into whole MiB; the engine writes whole ones, but for a host's memory."""
    return max(0, number(element)) // _MIB


def reference(element: Element | None) -> str | None:
    """Return the id of a reference such as `<cluster id="..."/>`."""
    return None if element is None else element.get("id")


def references(element: Element | None) -> tuple[str, ...]:
    """Return the ids within a list of references; an absent list is empty."""
    entries = () if element is None else element.iterchildren()
    return tuple(found for entry in entries if (found := entry.get("id")) is not None)


def properties(element: Element | None) -> dict[str, str]:
    """Return the names and values within a list of properties; an absent list is empty."""
    found = {}
    for entry in () if element is None else element.iterchildren():
        fields = children(entry, "name", "value")
        found[text(fields.get("name"))] = text(fields.get("value"))
    return found


#: How a field of a record is read, by its type.
_READERS: Final[Mapping[Any, Callable[[Element | None], Any]]] = {
    str: text, bool: flag, int: number, tuple[str, ...]: references, dict[str, str]: properties
}  # fmt: skip


@cache
def _readers_of(kind: Callable[..., Any]) -> Mapping[str, Callable[[Element | None], Any]]:
    return {name: _READERS[hint] for name, hint in get_type_hints(kind).items() if hint in _READERS}


def record(kind: Callable[..., _Record], element: Element | None, **given: Any) -> _Record:
    """Read a record: of what is not given, each field from the child of its name, as its type says."""
    readers = _readers_of(kind)
    if element is not None and "id" in readers:
        given.setdefault("id", identity(element))
    found = {} if element is None else {child.tag: child for child in element.iterchildren()}
    given.update((name, read(found.get(name))) for name, read in readers.items() if name not in given)
    return kind(**given)


def identity(element: Element) -> str:
    """Return an entity's own id."""
    return element.get("id", "")
