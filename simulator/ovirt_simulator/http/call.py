"""One request to the API: who asks, with which parameters, and how its answer expands what it follows.

A followed link is a whole GET of the sub-resource for every entity that has it, as in the engine; and so are
its traps: what cannot be followed, or is absent on one entity, fails the whole request.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from lxml import etree
from werkzeug import Request

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Caller
from ovirt_simulator.core.state import State
from ovirt_simulator.http import markup
from ovirt_simulator.http.control import User
from ovirt_simulator.http.markup import Refusal, fault, not_simulated, page, usage

#: What to expand: names, with what to expand below them.
Follow: TypeAlias = "dict[str, Follow]"
#: Renders the resource at an address for a call: given the tag it gets and what to follow below.
Expand = Callable[["Call", str, str, Follow], str]

_CORRELATION_LENGTH = 36
NOT_AUTHORIZED = "[User is not authorized to perform this action.]"


class FollowError(Exception):
    """A `follow` that the engine fails on: HTTP 500 for the whole request."""


@dataclass
class Call:
    """A request to the API by a user who is logged in, or what one follows."""

    engine: Engine
    request: Request
    user_name: str
    user: User
    path: str
    expand: Expand
    #: Markup that has been rendered and still holds, by address, with what it was rendered from.
    rendered: dict[str, tuple[object, str]]
    follow: Follow
    #: Whether this call renders what another one follows; then `search` and `max` are not its own.
    followed: bool = False

    @property
    def state(self) -> State:
        """The engine's records: each is immutable, and a copy of a whole table needs no lock."""
        state: State = self.engine.queries.state
        return state

    def parameter(self, name: str) -> str | None:
        """Give a parameter of the query."""
        return self.request.args.get(name)

    def number(self, name: str) -> int | None:
        """Give a number parameter; None when it is absent or not one."""
        word = self.parameter(name)
        return int(word) if word is not None and re.fullmatch(r"-?\d+", word) else None

    @cached_property
    def correlation_id(self) -> str:
        """What the events of this request carry: what the client gave, cleaned and cut, or a random id."""
        given = self.request.headers.get("Correlation-Id") or self.parameter("correlation_id") or ""
        return re.sub("[^0-9a-zA-Z_-]", "", given)[:_CORRELATION_LENGTH] or str(uuid.uuid4())

    @property
    def caller(self) -> Caller:
        return Caller(user=f"{self.user_name}-authz", correlation_id=self.correlation_id)

    @property
    def filtered(self) -> bool:
        """Whether queries show only what the user has permissions on: those of who is no admin."""
        return not self.user.admin

    def cached(self, address: str, source: object, render: Callable[[], str]) -> str:
        """Give the markup of what is at an address, rendered again only if its source has changed."""
        held = self.rendered.get(address)
        if held is None or (held[0] is not source and held[0] != source):
            held = self.rendered[address] = source, render()
        return held[1]

    def body(self, tag: str) -> Node:
        """Read the body, XML whose root is `tag`; refuse others with a usage message."""
        request, step = self.request, self.path.rstrip("/").rpartition("/")[2]
        if request.mimetype == "application/json":
            raise not_simulated("JSON")
        if request.mimetype not in ("", "application/xml"):
            raise Refusal(page(415))
        try:
            body = etree.fromstring(request.get_data(), _PARSER)
        except etree.XMLSyntaxError:
            raise usage() from None
        if body.tag != tag:
            raise usage()
        if request.method == "PUT" and body.get("id") not in (None, step):
            raise fault(409, "Attempt to set immutable field: id", "Broken immutability constraint")
        return body

    def named(self, node: Node, table: str) -> str | None:
        """Give the id of what an element refers to by id or name; 404 for an unknown name."""
        identity, name = node.get("id"), node.findtext("name")
        if identity is not None or name is None:
            return identity
        for record in tuple(getattr(self.state, table).values()):
            if record.name == name.strip():
                return str(record.id)
        raise fault(404, f"Entity not found: {name.strip()}")

    def links(self, href: str, ids: Mapping[str, str], *, plain: bool = False) -> Links:
        """Give the links of the entity at an address; of a `plain` one none is followed."""
        return Links(self, href, ids, {} if plain else self.follow)

    def below(self, follow: Follow) -> Call:
        """Give the call that renders what this one follows."""
        return replace(self, follow=follow, followed=True)


@dataclass
class Links:
    """The links of one entity at `href`: ask for each, and then for the `entity` around them and the rest.

    `ids` are those of the entities above it, by their names in the address.
    """

    call: Call
    href: str
    ids: Mapping[str, str]
    _follow: Follow
    _met: set[str] = field(default_factory=set)

    def follows(self, attribute: str) -> bool:
        return attribute in self._follow

    def link(self, rel: str, attribute: str | None) -> str:
        """Give the link to a sub-collection; `attribute` is what `follow` calls it, if it can be followed."""
        address = f"{self.href}/{rel}"
        if attribute is None or not self.follows(attribute):
            return f'<link href="{address}" rel="{rel}"/>'
        return self._followed(address, attribute)

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
        self._met.add(attribute)
        return self.call.expand(self.call, address, attribute, self._follow[attribute])


def parse_follow(text: str) -> Follow:
    """Read `nics,disk_attachments.disk` as names with names below them; empty text follows nothing."""
    follow: Follow = {}
    for chain in text.split(",") if text.strip(",.") else ():
        level = follow
        for name in chain.split("."):
            level = level.setdefault(name, {})
    return follow


# -- Request bodies: what commands take from them. What the engine cannot read, or its API has and no command
# here takes, is refused as it refuses it, and never quietly left out. What a client sends for `false`, or
# empty, asks for nothing and passes.
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
#: Any element may have these of the entity that it began as, and the engine does not take them from there.
_EVERYWHERE = frozenset({"actions", "link"})
#: An element of a body.
Node: TypeAlias = "etree._Element"


class Part(NamedTuple):
    """What a command takes from a body: the elements that count, by their paths, and how they are read.

    What refers to an entity by its id may show more of it, which counts for nothing.
    """

    paths: str
    #: None is what is not there.
    read: Callable[[Call, Node], Any]


def converted(convert: Callable[[str], Any]) -> Callable[[str], Part]:
    """Make parts that are the text of one element, converted."""

    def read(path: str, node: Node) -> Any:
        found = node.findtext(path)
        try:
            return None if found is None else convert(found.strip())
        except (ValueError, KeyError):
            raise usage() from None

    return lambda path: Part(path, lambda _, node: read(path, node))


boolean, number = converted(_BOOLEANS.__getitem__), converted(float)


def id_of(path: str) -> Part:
    """The id of an element that refers to an entity; of the body itself by `.`."""
    return Part(path, lambda _, node: next((found.get("id") for found in node.findall(path)), None))


def named(path: str, table: str) -> Part:
    """The id of an element that refers to an entity by its id or name."""
    paths = f"{path} {path}/name"
    return Part(paths, lambda call, node: next((call.named(one, table) for one in node.findall(path)), None))


def _listed(path: str, read: Callable[[list[Node]], Any]) -> Callable[[Call, Node], Any]:
    """Read what a list holds; None when it is absent, which keeps what is there."""
    around = path.partition("/")[0]
    return lambda _, node: None if node.find(around) is None else read(node.findall(path))


def ids(path: str) -> Part:
    """The ids in a list, those without one skipped."""
    return Part(path, _listed(path, lambda found: tuple(filter(None, (one.get("id") for one in found)))))


def pairs(path: str) -> Part:
    """Names with their values, as properties stand in a list."""

    def read(found: list[Node]) -> dict[str, str]:
        return {(one.findtext("name") or "").strip(): (one.findtext("value") or "").strip() for one in found}

    return Part(f"{path}/name {path}/value", _listed(path, read))


def rule(tag: str, *, legacy: bool = False) -> Part:
    """A rule of an affinity group; with `legacy`, an absent one stands in the group itself."""
    own = {name: boolean(f"{tag}/{name}") for name in ("enabled", "positive", "enforcing")}
    stand_in = {name: boolean(name) for name in ("positive", "enforcing")} if legacy else {}

    def read(call: Call, node: Node) -> dict[str, bool | None] | None:
        parts = stand_in if node.find(tag) is None else own
        said = {name: part.read(call, node) for name, part in parts.items()}
        return said if parts is own or {*said.values()} - {None} else None

    return Part(" ".join(part.paths for part in (*own.values(), *stand_in.values())), read)


_KINDS: Mapping[str, Callable[[str], Part]] = {
    "": converted(str),
    "boolean": boolean,
    "ids": ids,
    "integer": converted(int),
    "megabytes": converted(lambda octets: int(octets) >> 20),
    "moment": converted(datetime.fromisoformat),
    "number": number,
    "pairs": pairs,
}


def taken(words: str, **more: Part) -> dict[str, Part]:
    """Give the parts that words name, each `argument=path:kind`, by their arguments.

    An argument that has the name of its path stands alone, and what is text has no kind. `path@` refers to an
    entity by its id, and `path@table` by its id or name.
    """
    found = {}
    for word in words.split():
        named_as, _, place = word.rpartition("=")
        place, _, kind = place.partition(":")
        path, refers, table = place.partition("@")
        part = named(path, table) if table else id_of(path) if refers else _KINDS[kind](path)
        found[named_as or path] = part
    return found | more


def check(node: Node, takes: Collection[str], past: Collection[str], above: str = "") -> None:
    """Refuse an element that a command neither takes nor reads past, with all that is below, by their paths.

    Of what refers to an entity by its id, nothing more counts.
    """
    for child in node.iterchildren("*"):
        path = f"{above}{child.tag}"
        if path in past or (path in takes and child.get("id") is not None):
            continue
        if path in takes or any(one.startswith(f"{path}/") for one in (*takes, *past)):
            check(child, takes, past, f"{path}/")
        elif child.tag not in _EVERYWHERE and _asks(child):
            raise not_simulated(f"the element {node.getroottree().getroot().tag}/{path}")


def _asks(node: Node) -> bool:
    """Say whether an element asks for anything: it, or what is below it, has an id or a text but `false`."""
    if "id" in node.attrib or (node.text or "").strip().lower() not in ("", "false"):
        return True
    return any(_asks(child) for child in node.iterchildren("*"))
