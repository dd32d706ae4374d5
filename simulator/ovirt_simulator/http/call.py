"""One request to the API: who asks, with which parameters, and how its answer expands what it follows."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from werkzeug import Request

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Caller
from ovirt_simulator.core.queries import Queries
from ovirt_simulator.http import guids, markup
from ovirt_simulator.http.answers import Refusal, denied, fault, not_simulated, page
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.cache import RenderCache
from ovirt_simulator.http.links import NOTHING, Follow, Links, parse_follow
from ovirt_simulator.http.users import Permit, User

_TRUE = {"", "t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}
#: Parameters that are also read from headers.
_HEADERS = {"filter": "Filter", "all_content": "All-Content"}
_CORRELATION_LENGTH = 36

NOT_AUTHORIZED = "[User is not authorized to perform this action.]"

#: Renders the resource at an address for this call: given the tag it gets and what to follow below.
Expand = Callable[["Call", str, str, Follow], str]


Value = TypeVar("Value")


class Call:
    """A request to the API by a user who is logged in."""

    def __init__(
        self,
        engine: Engine,
        request: Request,
        user_name: str,
        user: User,
        expand: Expand,
        cache: RenderCache,
        path: str,
        matrix: Mapping[str, str],
        follow: Follow | None = None,
        remembered: dict[str, Any] | None = None,
    ) -> None:
        self.engine = engine
        self.cache = cache
        self.user_name = user_name
        self.user = user
        self._request = request
        self._expand = expand
        #: What follows /ovirt-engine/api, without parameters.
        self._path = path
        #: Parameters behind the last step of the path: `;max=2`.
        self._matrix = matrix
        self._remembered: dict[str, Any] = {} if remembered is None else remembered
        #: Whether this call renders what another one follows; then `search` and `max` are not its own.
        self.followed = follow is not None
        self.follow = parse_follow(self.parameter("follow") or "") if follow is None else follow
        #: Whether links were asked for, of which some may be followed.
        self.linked = False

    @property
    def queries(self) -> Queries:
        return self.engine.queries

    def parameter(self, name: str) -> str | None:
        """Give a parameter of the query or behind the path, or for some the header that may stand for it."""
        value = self._request.args.get(name, self._matrix.get(name))
        if value is None and name in _HEADERS:
            return self._request.headers.get(_HEADERS[name])
        return value

    def flag(self, name: str) -> bool | None:
        """Give a boolean parameter; None when it is absent or not one."""
        word = self.parameter(name)
        if word is None:
            return None
        return True if word.lower() in _TRUE else False if word.lower() in _FALSE else None

    def number(self, name: str) -> int | None:
        """Give a number parameter; None when it is absent or not one."""
        word = self.parameter(name)
        return int(word) if word is not None and re.fullmatch(r"-?\d+", word) else None

    @cached_property
    def correlation_id(self) -> str:
        """What the events of this request carry: what the client gave, cleaned and cut, or a random id."""
        given = self._request.headers.get("Correlation-Id") or self.parameter("correlation_id") or ""
        cleaned = re.sub("[^0-9a-zA-Z_-]", "", given)[:_CORRELATION_LENGTH]
        return cleaned or str(uuid.uuid4())

    @property
    def caller(self) -> Caller:
        return Caller(user=f"{self.user_name}-authz", correlation_id=self.correlation_id)

    @cached_property
    def filtered(self) -> bool:
        """Whether queries show only what the user has permissions on; the default for who is no admin."""
        asked = self.flag("filter")
        if asked is None:
            return not self.user.admin
        if not asked and not self.user.admin:
            raise denied()
        return asked

    @cached_property
    def all_content(self) -> bool:
        """Whether to show what costs the engine more; answers to POST and PUT always do."""
        return bool(self.flag("all_content")) or self._request.method != "GET"

    def once(self, key: str, compute: Callable[[], Value]) -> Value:
        """Give what is computed once for the whole request, with all that it follows."""
        if key not in self._remembered:
            self._remembered[key] = compute()
        value: Value = self._remembered[key]
        return value

    def body(self, tag: str) -> Body:
        """Read the body, XML whose root is `tag`."""
        document, kind = self._request.get_data(), self._request.mimetype
        step = self._path.rstrip("/").rpartition("/")[2]
        if kind == "application/json":
            raise not_simulated("JSON")
        if kind not in ("", "application/xml"):
            raise Refusal(page(415))
        body = Body.parse(document, tag)
        body.check(step)
        if self._request.method == "PUT" and body.id not in (None, step):
            raise fault(409, "Attempt to set immutable field: id", "Broken immutability constraint")
        if guids.are_uuids(cluster.id for cluster in self.queries.clusters()):
            body.check_ids()
        return body

    def need_admin(self) -> None:
        """Refuse a query that only admins may make, and not filtered."""
        if self.filtered:
            raise denied()

    def need(self, permit: Permit) -> None:
        """Refuse a command that the user has no permit for."""
        if not self.user.may(permit):
            raise fault(403, NOT_AUTHORIZED)

    def links(self, *segments: str) -> Links:
        """Give the links of the entity at this path, following what the request asks to follow."""
        return self.links_at(markup.path(*segments))

    def links_at(self, href: str) -> Links:
        self.linked = True
        return Links(href, self.follow, self._expansion)

    def plain_links(self, *segments: str) -> Links:
        """Give the links of an entity of which nothing is followed: part of a command's answer."""
        return Links(markup.path(*segments), NOTHING, self._expansion)

    def below(self, follow: Follow) -> Call:
        """Give the call that renders what this one follows."""
        return Call(
            self.engine,
            self._request,
            self.user_name,
            self.user,
            self._expand,
            self.cache,
            self._path,
            self._matrix,
            follow,
            self._remembered,
        )

    def _expansion(self, address: str, tag: str, follow: Follow) -> str:
        return self._expand(self, address, tag, follow)
