"""What representations are made of: the elements of an entity, as data.

A field is markup as it stands, or what makes some of the links of an entity and its record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from ovirt_simulator.http.call import Call, Links
from ovirt_simulator.http.markup import Value, attribute, element, lines, path, text

#: What a field reads of a record: the attribute of this name, or what a function gives.
Read: TypeAlias = "str | Callable[[Any], Any]"
Field: TypeAlias = "str | Callable[[Links, Any], str]"


class Shape(msgspec.Struct, frozen=True):
    """How entities of a kind are shown."""

    tag: str
    fields: tuple[Field, ...]
    #: The id that a record is shown with.
    id: Callable[[Any], str] = attrgetter("id")
    #: What the markup of a record follows from, if it is worth keeping.
    source: Callable[[Call, Any], tuple[object, ...]] | None = None

    def render(self, links: Links, record: Any) -> str:
        call = links.call
        if self.source is None or call.follow:
            return self._fresh(links, record)
        return call.cached(links.href, self.source(call, record), lambda: self._fresh(links, record))

    def mention(self, links: Links, entity_id: str) -> str:
        """Render an entity that may not be there; no field asks for its record."""
        return links.entity(self.tag, entity_id, *_made(self.fields, links, None))

    def _fresh(self, links: Links, record: Any) -> str:
        return links.entity(self.tag, self.id(record), *_made(self.fields, links, record))


def _made(fields: Iterable[Field], links: Links, record: Any) -> list[str]:
    return [field if isinstance(field, str) else field(links, record) for field in fields]


def _reading(read: Read) -> Callable[[Any], Any]:
    return attrgetter(read) if isinstance(read, str) else read


def value(tag: str, read: Read | None = None) -> Field:
    """An element with a value of the record; nothing when that is None."""
    get = _reading(tag if read is None else read)
    return lambda _, record: text(tag, get(record))


def fixed(tag: str, shown: Value) -> Field:
    return text(tag, shown)


def nested(tag: str, *fields: Field) -> Field:
    return lambda links, record: element(tag, *_made(fields, links, record))


def when(test: Callable[[Links, Any], bool], *fields: Field) -> Field:
    """Fields that only some entities have."""
    return lambda links, record: lines(*_made(fields, links, record)) if test(links, record) else ""


def reference(tag: str, collection: str, read: Read | None = None) -> Field:
    """A reference to another entity, whose id the record has; nothing where there is none."""
    get = _reading(tag if read is None else read)
    return lambda links, record: links.reference(tag, collection, get(record))


def parent(tag: str, collection: str, name: str, *, followed: bool = True) -> Field:
    """A reference to the entity above this one, by its name in the address."""
    if followed:
        return lambda links, _: links.reference(tag, collection, links.ids[name])
    return lambda links, _: mention(tag, collection, links.ids[name])


def mentions(tag: str, item: str, collection: str, read: Read, *, always: bool = False) -> Field:
    """A list of ids that cannot be followed."""
    get = _reading(read)

    def made(_: Links, record: Any) -> str:
        found = [mention(item, collection, entity_id) for entity_id in get(record)]
        return element(tag, *found) if found or always else ""

    return made


def mention(tag: str, collection: str, entity_id: str) -> str:
    return f'<{tag} href="{path(collection, entity_id)}" id="{attribute(entity_id)}"/>'


def properties(tag: str, read: Read | None = None, item: str = "property") -> Field:
    """Names with their values; nothing when there are none."""
    get = _reading(tag if read is None else read)

    def made(_: Links, record: Any) -> str:
        pairs = get(record).items()
        found = [element(item, text("name", name), text("value", shown)) for name, shown in pairs]
        return element(tag, *found) if found else ""

    return made


def linked(names: str, **spelled: str | None) -> Field:
    """Links to sub-collections, by what `follow` calls them; None where that has no working name."""
    attributes: Mapping[str, str | None] = {name.replace("_", ""): name for name in names.split()} | spelled
    return lambda links, _: "\n".join(links.link(rel, name) for rel, name in attributes.items())


def version() -> Field:
    def made(_: Links, record: Any) -> str:
        major, _, minor = record.compatibility.partition(".")
        return element("version", text("major", major), text("minor", minor))

    return made


NAME, DESCRIPTION = value("name"), value("description")
