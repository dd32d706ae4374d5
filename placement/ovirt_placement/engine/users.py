"""People at an engine: how they log in, who the engine takes them for, permissions, roles, and rights.

A person's rights are read in their own name: the engine then adds what comes by groups of the directory and
by Everyone.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import urlencode

from lxml import etree

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine import xml
from ovirt_placement.engine.connection.exchanges import Answer, Trust, ask_once
from ovirt_placement.engine.connection.failures import AWAY_STATUSES, EngineAway, Unanswered, has_no_role
from ovirt_placement.engine.connection.log_ins import (
    LOG_IN,
    LOG_OUT,
    TROUBLES,
    log_in_form,
    object_of,
    post_form,
    sendable,
    url_of,
)
from ovirt_placement.model import Snapshot
from ovirt_service.errors import UserError

_TOKEN_INFO: Final = "sso/oauth/token-info"  # noqa: S105 - an address
#: Validates a token without a secret, and without prolonging its session.
_VALIDATE: Final = "ovirt-ext=token-info:validate"


class Refused(UserError):
    """The engine does not take the name and password, or the token."""


class NoRole(Refused):
    """The engine knows the person, to whom no role was granted."""


class UserTokens:
    """The log-ins of people at one engine; for any thread. Each method raises `EngineAway` as well."""

    def __init__(self, settings: EngineSettings) -> None:
        """Raises `UserError` where no engine is configured."""
        self._api, self._settings = url_of(settings), settings

    def log_in(self, name: str, password: str) -> str:
        """A new token for a name with its profile; raises `Refused` without the engine's reason."""
        said = object_of(self._post(LOG_IN, log_in_form(name, password))) or {}
        token = said.get("access_token")
        if isinstance(token, str) and sendable(token):
            return token
        if said.get("error_code", said.get("error")) in TROUBLES or not said:
            raise EngineAway("the engine cannot log anybody in now", request_sent=True)
        raise Refused("the engine does not take this name and password")

    def is_valid(self, token: str) -> bool:
        """Whether the engine still takes a token."""
        answer = self._post(_TOKEN_INFO, {"scope": _VALIDATE, "token": token})
        if answer.status not in (HTTPStatus.OK, HTTPStatus.BAD_REQUEST):
            raise EngineAway(
                f"the engine answers {answer.status} when asked about a token", request_sent=True
            )
        return answer.status == HTTPStatus.OK

    def log_out(self, token: str) -> None:
        """Have the engine forget a token."""
        self._post(LOG_OUT, {"token": token})

    def get(self, token: str, path: str, **query: str) -> bytes:
        """Read `/` and the like as XML in the name of the person.

        Raises `Refused` where the engine does not take the token, or does not let the person read this.
        """
        if not sendable(token):
            raise Refused("the engine does not take this token")
        headers = {"Accept": "application/xml", "Authorization": f"Bearer {token}"}
        url = f"{self._api}{path}{f'?{urlencode(query)}' if query else ''}"
        trust = Trust(self._settings.ca_file, self._settings.insecure)
        seconds = self._settings.timeout_seconds
        answer = _awaited(lambda: ask_once(url, None, headers, trust=trust, seconds=seconds))
        if answer.status == HTTPStatus.OK:
            return answer.body
        if answer.status in (*AWAY_STATUSES, HTTPStatus.INTERNAL_SERVER_ERROR):
            raise EngineAway(f"the engine answers {answer.status}", request_sent=True)
        if answer.status == HTTPStatus.UNAUTHORIZED and has_no_role(answer.body):
            raise NoRole("no role was granted to this person")
        raise Refused(f"the engine answers {answer.status} to {path}")

    def _post(self, path: str, form: dict[str, str]) -> Answer:
        answer = _awaited(lambda: post_form(self._settings, path, form, self._settings.timeout_seconds))
        if answer.status in AWAY_STATUSES:
            raise EngineAway(f"the engine is starting or stopping ({answer.status})", request_sent=True)
        return answer


def _awaited(ask: Callable[[], Answer]) -> Answer:
    try:
        return ask()
    except Unanswered as error:
        raise EngineAway(f"the engine does not answer: {error}", request_sent=True) from None


#: What a permission may be on; without any of them it is on the whole system.
_OBJECTS = ("cluster", "data_center", "disk", "host", "storage_domain", "template", "vm", "vm_pool")


@dataclass(frozen=True)
class Root:
    """The root of the API."""

    #: As in (4, 5); None if it does not say.
    version: tuple[int, int] | None
    #: By the engine's clock, where it says.
    time: datetime | None
    user_id: str | None
    user_name: str


@dataclass(frozen=True)
class Permission:
    """A role that the user has, on one object or on the system."""

    role: str
    #: The kind of object and its id; None for the system.
    on: tuple[str, str] | None


class Role(NamedTuple):
    """Whether it is of type admin, and the names of its permits."""

    administrative: bool = False
    permits: frozenset[str] = frozenset()


def parse_root(content: bytes) -> Root:
    """Read `/`."""
    root = xml.entity(content, "api")
    version, user = root.find("product_info/version"), root.find("authenticated_user")
    numbers = None
    if version is not None and version.find("major") is not None:
        numbers = xml.number(version.find("major")), xml.number(version.find("minor"))
    return Root(
        version=numbers,
        time=xml.moment(root.find("time")),
        user_id=xml.reference(user),
        user_name=xml.text(root.find("authenticated_user/user_name")),
    )


def user_names(content: bytes) -> dict[str, str]:
    """Read `/users`: ids by the name with the authorization provider."""
    return {
        xml.text(element.find("user_name")): xml.identity(element)
        for element in xml.elements(content, "user")
    }


def permissions(content: bytes) -> tuple[Permission, ...]:
    """Read `/users/{id}/permissions`."""
    found = []
    for element in xml.elements(content, "permission"):
        on = next(((one.tag, one.get("id", "")) for one in element.iterchildren(*_OBJECTS)), None)
        found.append(Permission(xml.reference(element.find("role")) or "", on))
    return tuple(found)


def roles(content: bytes) -> dict[str, Role]:
    """Read `/roles?follow=permits`, by the role's id."""
    return {
        xml.identity(element): Role(
            xml.flag(element.find("administrative")),
            frozenset(xml.text(name) for name in element.iterfind("permits/permit/name")),
        )
        for element in xml.elements(content, "role")
    }


#: Where something is granted: kind and id, None for the whole system.
Place = tuple[str, str] | None


@dataclass(frozen=True)
class Rights:
    """A person and what is granted to them."""

    user_id: str
    user_name: str
    #: Whether any role of theirs is of type admin: then the portal shows hosts and groups, too.
    administrator: bool
    permits: dict[Place, frozenset[str]] = field(default_factory=dict)

    def may(self, permit: str, cluster: str, snapshot: Snapshot) -> bool:
        """Whether something is permitted on a cluster: granted on it, its data center or the system."""
        known = snapshot.cluster_by_id.get(cluster)
        if known is None:
            return False
        places: list[Place] = [None, ("cluster", cluster)]
        if known.data_center is not None:
            places.append(("data_center", known.data_center))
        return any(permit in self.permits.get(place, ()) for place in places)


def read_rights(tokens: UserTokens, token: str) -> Rights:
    """Ask the engine who this is and what they may do; raises `Refused` and `EngineAway`."""
    try:
        root = parse_root(tokens.get(token, ""))
        if root.user_id is None:
            raise Refused("the engine does not say whose token this is")
        held = permissions(tokens.get(token, f"/users/{root.user_id}/permissions"))
        name, known = root.user_name or root.user_id, dict[str, Role]()
        if not root.user_name:
            with suppress(Refused):  # then the id has to do
                user = xml.entity(tokens.get(token, f"/users/{root.user_id}"), "user")
                name = xml.text(user.find("user_name")) or name
        with suppress(Refused):  # who is no admin may not read them all
            known = roles(tokens.get(token, "/roles", follow="permits"))
    except (etree.XMLSyntaxError, xml.Unexpected, xml.TooLarge):
        raise EngineAway("what answers sends something else than an engine", request_sent=True) from None
    permits: dict[Place, frozenset[str]] = {}
    for one in held:
        permits[one.on] = permits.get(one.on, frozenset()) | known.get(one.role, Role()).permits
    return Rights(
        user_id=root.user_id,
        user_name=name,
        administrator=any(known.get(one.role, Role()).administrative for one in held),
        permits=permits,
    )
