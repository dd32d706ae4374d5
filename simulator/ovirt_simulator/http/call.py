"""One request to the API: who asks, with which parameters, and how its answer expands what it follows.

A followed link is a whole GET of the sub-resource for every entity that has it, as in the engine; and so are
its traps: what cannot be followed, or is absent on one entity, fails the whole request.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property
from typing import TypeAlias
from urllib.parse import quote

from werkzeug import Request

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Caller
from ovirt_simulator.core.state import State
from ovirt_simulator.http import markup
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.markup import Refusal, fault, not_simulated, page
from ovirt_simulator.http.sso import Permit, User

#: What to expand: names, with what to expand below them.
Follow: TypeAlias = "dict[str, Follow]"
#: Renders the resource at an address for a call: given the tag it gets and what to follow below.
Expand = Callable[["Call", str, str, Follow], str]

_CORRELATION_LENGTH = 36
NOT_AUTHORIZED = "[User is not authorized to perform this action.]"


class FollowError(Exception):
    """A `follow` that the engine fails on: HTTP 500 for the whole request."""


class Call:
    """A request to the API by a user who is logged in, or what one follows."""

    #: Whether this call renders what another one follows; then `search` and `max` are not its own.
    followed = False

    def __init__(
        self,
        engine: Engine,
        request: Request,
        user_name: str,
        user: User,
        path: str,
        expand: Expand,
        rendered: dict[str, tuple[tuple[object, ...], str]],
    ) -> None:
        self.engine = engine
        self.user_name = user_name
        self.user = user
        self._request = request
        self._path = path
        self._expand = expand
        #: Markup that has been rendered and still holds, by address, with what it was rendered from.
        self._rendered = rendered
        self.follow = parse_follow(self.parameter("follow") or "")

    @property
    def state(self) -> State:
        """The engine's records: each is immutable, and a copy of a whole table needs no lock."""
        state: State = self.engine.queries.state
        return state

    def parameter(self, name: str) -> str | None:
        """Give a parameter of the query."""
        return self._request.args.get(name)

    def number(self, name: str) -> int | None:
        """Give a number parameter; None when it is absent or not one."""
        word = self.parameter(name)
        return int(word) if word is not None and re.fullmatch(r"-?\d+", word) else None

    @cached_property
    def correlation_id(self) -> str:
        """What the events of this request carry: what the client gave, cleaned and cut, or a random id."""
        given = self._request.headers.get("Correlation-Id") or self.parameter("correlation_id") or ""
        return re.sub("[^0-9a-zA-Z_-]", "", given)[:_CORRELATION_LENGTH] or str(uuid.uuid4())

    @property
    def caller(self) -> Caller:
        return Caller(user=f"{self.user_name}-authz", correlation_id=self.correlation_id)

    @property
    def filtered(self) -> bool:
        """Whether queries show only what the user has permissions on: those of who is no admin."""
        return not self.user.admin

    def cached(self, address: str, source: tuple[object, ...], render: Callable[[], str]) -> str:
        """Give the markup of what is at an address, rendered again only if its source has changed."""
        held = self._rendered.get(address)
        if held is None or held[0] != source:
            held = self._rendered[address] = source, render()
        return held[1]

    def body(self, tag: str) -> Body:
        """Read the body, XML whose root is `tag`."""
        request, step = self._request, self._path.rstrip("/").rpartition("/")[2]
        if request.mimetype == "application/json":
            raise not_simulated("JSON")
        if request.mimetype not in ("", "application/xml"):
            raise Refusal(page(415))
        body = Body.parse(request.get_data(), tag)
        if request.method == "PUT" and body.id not in (None, step):
            raise fault(409, "Attempt to set immutable field: id", "Broken immutability constraint")
        return body

    def need(self, permit: Permit) -> None:
        """Refuse a command that the user has no permit for."""
        if not self.user.may(permit):
            raise fault(403, NOT_AUTHORIZED)

    def links(self, href: str, ids: Mapping[str, str], *, plain: bool = False) -> Links:
        """Give the links of the entity at an address; of a `plain` one none is followed."""
        return Links(self, href, ids, {} if plain else self.follow)

    def expanded(self, address: str, tag: str, follow: Follow) -> str:
        return self._expand(self, address, tag, follow)

    def below(self, follow: Follow) -> Call:
        """Give the call that renders what this one follows."""
        call = copy(self)
        call.follow, call.followed = follow, True
        return call


class Links:
    """The links of one entity at `href`: ask for each, and then for the `entity` around them and the rest.

    `ids` are those of the entities above it, by their names in the address.
    """

    def __init__(self, call: Call, href: str, ids: Mapping[str, str], follow: Follow) -> None:
        self.call = call
        self.href = href
        self.ids = ids
        self._follow = follow
        self._met: set[str] = set()

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
        return self.call.expanded(address, attribute, self._follow[attribute])


def parse_follow(text: str) -> Follow:
    """Read `nics,disk_attachments.disk` as names with names below them; empty text follows nothing."""
    follow: Follow = {}
    for chain in text.split(",") if text.strip(",.") else ():
        level = follow
        for name in chain.split("."):
            level = level.setdefault(name, {})
    return follow
