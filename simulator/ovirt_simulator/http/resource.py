"""What a resource of the API is: entities at an address, how they are shown, and what can be done to them.

An entity is shown by fields, in their order. Those that a line names by words are values of the record,
`tag=attribute` where it calls them otherwise; `tag@collection` refers to what has the value as its id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, TypeAlias
from urllib.parse import quote

import msgspec
from werkzeug import Response

from ovirt_simulator.core.entities import Job
from ovirt_simulator.core.messages import Rejected
from ovirt_simulator.http import markup
from ovirt_simulator.http.call import NOT_AUTHORIZED, Call, Links, Part, check
from ovirt_simulator.http.control import Permit
from ovirt_simulator.http.markup import attribute, element, lines, path, text
from ovirt_simulator.http.search import searched

#: What a field reads of a record: the attribute of this name, or what a function gives.
Read: TypeAlias = "str | Callable[[Any], Any]"
#: Words, markup as it stands, or what makes some of an entity's links and its record.
Field: TypeAlias = "str | Callable[[Links, Any], str]"


class Shape:
    """How entities of a kind are shown; `kept` is markup while the record is the same."""

    def __init__(
        self, tag: str, *fields: Field, identity: Callable[[Any], str] = attrgetter("id"), kept: bool = False
    ) -> None:
        self.tag = tag
        self.fields = [*_spelled(fields)]
        self.id = identity
        self._kept = kept

    @property
    def plural(self) -> str:
        """The root element of a list."""
        return f"{self.tag[:-1]}ies" if self.tag.endswith("y") else f"{self.tag}s"

    def render(self, links: Links, record: Any) -> str:
        if not self._kept or links.call.follow:
            return self._fresh(links, record)
        return links.call.cached(links.href, record, lambda: self._fresh(links, record))

    def mention(self, links: Links, entity_id: str) -> str:
        """Render an entity that may not be there; no field asks for its record."""
        return links.entity(self.tag, entity_id, *_made(self.fields, links, None))

    def _fresh(self, links: Links, record: Any) -> str:
        return links.entity(self.tag, self.id(record), *_made(self.fields, links, record))


def _spelled(fields: Iterable[Field]) -> Iterator[Field]:
    for field in fields:
        if not isinstance(field, str) or field.startswith("<"):
            yield field
            continue
        for word in field.split():
            name, _, read = word.partition("=")
            tag, _, collection = name.partition("@")
            yield reference(tag, collection, read or tag) if collection else value(tag, read or tag)


def _made(fields: Iterable[Field], links: Links, record: Any) -> list[str]:
    return [field if isinstance(field, str) else field(links, record) for field in fields]


def _reading(read: Read) -> Callable[[Any], Any]:
    return attrgetter(read) if isinstance(read, str) else read


def value(tag: str, read: Read) -> Field:
    """An element with a value of the record; nothing when that is None."""
    get = _reading(read)
    return lambda _, record: text(tag, get(record))


def nested(tag: str, *fields: Field) -> Field:
    inside = [*_spelled(fields)]
    return lambda links, record: element(tag, *_made(inside, links, record))


def when(test: Callable[[Links, Any], bool], *fields: Field) -> Field:
    """Fields that only some entities have."""
    some = [*_spelled(fields)]
    return lambda links, record: lines(*_made(some, links, record)) if test(links, record) else ""


def reference(tag: str, collection: str, read: Read) -> Field:
    """A reference to another entity, whose id the record has; nothing where there is none."""
    get = _reading(read)
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


#: The ids in an address, by their names there.
Ids: TypeAlias = "Mapping[str, str]"
#: What a command takes from a body, by the names of its arguments; what the body has not is not there.
Given: TypeAlias = "dict[str, Any]"
#: Carries a command out: gives the record to show, or None for nothing but its end; an action's job.
Run: TypeAlias = "Callable[[Call, Ids, Given], Any]"
#: The records that are at an address, by id. Raises `Refusal` where something above them is not there.
Records: TypeAlias = "Callable[[Call, Ids], Mapping[str, Any]]"


_STEP = re.compile("<(.*?)>")


class Change(msgspec.Struct, frozen=True):
    """A command that a request carries out."""

    run: Run
    takes: Mapping[str, Part] = {}
    #: Elements that the engine takes and that count for nothing here.
    past: str = ""
    #: Arguments that must be there, `argument=words` where the engine calls one otherwise; and the whole.
    needs: str = ""
    called: str = ""
    status: int = 200
    #: Whether the command says by itself that the entity is not there.
    checks: bool = False

    def read(self, call: Call, tag: str) -> Given:
        """Read what the command takes from the body."""
        body, takes = call.body(tag), " ".join(part.paths for part in self.takes.values())
        check(body, takes.split(), self.past.split())
        given = {name: part.read(call, body) for name, part in self.takes.items()}
        for argument, _, needed in (word.partition("=") for word in self.needs.split()):
            if given[argument] in (None, ""):
                raise markup.incomplete(self.called or tag, needed or argument)
        return {name: value for name, value in given.items() if value is not None}


class Action(Change, frozen=True, kw_only=True):
    """A POST that begins something: it answers with the outcome and the job."""

    permit: Permit

    def answer(self, call: Call, ids: Ids, subject: str) -> Response:
        """Answer 200 with the job, or the fault.

        A "complete" action is accepted and begun; its effect shows later.
        """
        given = self.read(call, "action")
        if self.permit not in call.user.permits:
            return _failed(403, NOT_AUTHORIZED)
        try:
            job: Job = self.run(call, ids, given)
        except Rejected as rejected:
            return _failed(rejected.http_status, rejected.detail)
        shown = markup.entity("job", markup.path("jobs", job.id), job.id)
        return markup.document(markup.element("action", shown, "<status>complete</status>", subject))


def _failed(status: int, detail: str) -> Response:
    fault = markup.fault_element(detail)
    return markup.document(markup.element("action", fault, "<status>failed</status>"), status)


class Resource(msgspec.Struct, frozen=True):
    """A collection, with its entities at `ADDRESS/<id>` and their actions at `ADDRESS/<id>/NAME`."""

    address: str
    shape: Shape
    records: Records
    #: What its entities are called in addresses: `<vm_id>`.
    id: str = "entity_id"
    #: The collection that has an entity's own address, where that is another one: `/clusters/<cluster>/x`.
    home: str = ""
    #: What searches know the collection by; empty where it has none.
    search: str = ""
    by_name: bool = False
    listed: bool = True
    #: Whether an entity can be read by itself.
    single: bool = True
    #: Filtered queries are denied: only administrators may ask.
    admins: bool = False
    #: What is said of an entity that is not there, where it is not 404 with nothing in it.
    missing: Callable[[], markup.Refusal] = markup.absent
    #: What its POST, PUT and DELETE ask for.
    permit: Permit | None = None
    post: Change | None = None
    put: Change | None = None
    delete: Change | None = None
    actions: Mapping[str, Action] = {}
    #: How actions mention the entity.
    outline: Shape | None = None

    def list(self, call: Call, ids: Ids) -> list[str]:
        """Render all, or what a search finds."""
        found = list(self._found(call, ids).values())
        if self.by_name:
            found.sort(key=lambda record: record.name)
        if self.search:
            found = searched(call, self.search, found)
        return [self._rendered(call, ids, record) for record in found]

    def get(self, call: Call, ids: Ids) -> str:
        return self._rendered(call, ids, self._one(call, ids))

    def carry_out(self, call: Call, ids: Ids, method: str, change: Change) -> Response:
        """Carry out a POST, PUT or DELETE."""
        if not change.checks:
            if method == "POST":
                self._found(call, ids)
            else:
                self._one(call, ids)
        given = {} if method == "DELETE" else change.read(call, self.shape.tag)
        if self.permit not in call.user.permits:
            raise markup.fault(403, NOT_AUTHORIZED)
        record = change.run(call, ids, given)
        if record is None:
            return markup.document("<action><status>complete</status></action>")
        return markup.document(self._rendered(call, ids, record, plain=True), change.status)

    def act(self, call: Call, ids: Ids, name: str) -> Response:
        action, shape = self.actions[name], self.outline or self.shape
        if not action.checks:
            self._one(call, ids)
        href = markup.path(*self.address.strip("/").split("/"), ids[self.id])
        subject = shape.mention(call.links(href, ids, plain=True), ids[self.id])
        return action.answer(call, ids, subject)

    def _found(self, call: Call, ids: Ids) -> Mapping[str, Any]:
        if call.filtered and self.admins:
            raise markup.denied()
        if call.follow and not self.shape.fields:
            raise markup.not_simulated(f"what can be followed at {self.address}")
        return self.records(call, ids)

    def _one(self, call: Call, ids: Ids) -> Any:
        found = self._found(call, ids).get(ids[self.id])
        if found is None:
            raise self.missing()
        return found

    def _rendered(self, call: Call, ids: Ids, record: Any, *, plain: bool = False) -> str:
        above = _STEP.sub(
            lambda step: quote(getattr(record, step[1]) if self.home else ids[step[1]], safe=""),
            self.home or self.address,
        )
        href = f"{markup.API}{above}/{quote(self.shape.id(record), safe='')}"
        return self.shape.render(call.links(href, ids, plain=plain), record)
