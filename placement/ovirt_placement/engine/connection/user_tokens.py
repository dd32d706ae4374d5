"""Tokens of people: log-ins at the engine's single sign-on, rights, and a token that the caller has given."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.exchanges import Answer, Trust, get, post
from ovirt_placement.engine.connection.failures import EngineAway, EngineSetupError, has_no_role
from ovirt_placement.engine.connection.sso import AWAY_STATUSES, LOG_IN, LOG_OUT, SCOPE
from ovirt_placement.engine.connection.unanswered import Unanswered
from ovirt_service.errors import UserError

_TOKEN_INFO: Final = "/ovirt-engine/sso/oauth/token-info"  # noqa: S105 - an address
#: Validates a token without a secret, and without prolonging its session.
_VALIDATE: Final = "ovirt-ext=token-info:validate"
#: What the engine says when it has a trouble of its own.
_OF_THE_ENGINE: Final = ("server_error", "temporarily_unavailable")
_JSON: Final = {"Accept": "application/json"}
_LONGEST_TOKEN: Final = 4096
VARIABLE: Final = "OVIRT_TOKEN"


class Refused(UserError):
    """The engine does not take the name and password, or the token."""


class NoRole(Refused):
    """The engine knows the person, to whom no role was granted."""


class UserTokens:
    """The log-ins of people at one engine; for any thread. Each method raises `EngineAway` as well."""

    def __init__(self, settings: EngineSettings) -> None:
        """Raises `UserError` where no engine is configured."""
        if not settings.url:
            raise UserError(
                "no engine: set url under [engine] in the configuration, or the variable OVIRT_URL"
            )
        self._api = settings.url.rstrip("/")
        parts = urlsplit(settings.url)
        self._root = f"{parts.scheme}://{parts.netloc}"
        self._trust = Trust(None if settings.ca_file is None else str(settings.ca_file), settings.insecure)
        self._seconds = settings.timeout_seconds

    def log_in(self, name: str, password: str) -> str:
        """A new token for a name with its profile; raises `Refused` without the engine's reason."""
        form = {"grant_type": "password", "scope": SCOPE, "username": name, "password": password}
        said = _object(self._post(LOG_IN, form))
        token = said.get("access_token")
        if isinstance(token, str) and sendable(token):
            return token
        if said.get("error_code", said.get("error")) in _OF_THE_ENGINE or not said:
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
        self._post(LOG_OUT, {"scope": SCOPE, "token": token})

    def get(self, token: str, path: str, **query: str) -> bytes:
        """Read `/` and the like as XML in the name of the person.

        Raises `Refused` where the engine does not take the token, or does not let the person read this.
        """
        if not sendable(token):
            raise Refused("the engine does not take this token")
        words = "&".join(f"{name}={quote(value)}" for name, value in query.items())
        headers = {"Accept": "application/xml", "Authorization": f"Bearer {token}"}
        url = f"{self._api}{path}{f'?{words}' if words else ''}"
        try:
            answer = get(url, headers, trust=self._trust, seconds=self._seconds)
        except Unanswered as error:
            raise EngineAway(f"the engine does not answer: {error}", request_sent=True) from None
        if answer.status == HTTPStatus.OK:
            return answer.body
        if answer.status in (*AWAY_STATUSES, HTTPStatus.INTERNAL_SERVER_ERROR):
            raise EngineAway(f"the engine answers {answer.status}", request_sent=True)
        if answer.status == HTTPStatus.UNAUTHORIZED and has_no_role(answer.body):
            raise NoRole("no role was granted to this person")
        raise Refused(f"the engine answers {answer.status} to {path}")

    def _post(self, path: str, form: dict[str, str]) -> Answer:
        try:
            answer = post(
                self._root + path, form, _JSON, trust=self._trust, seconds=self._seconds, ended=lambda: False
            )
        except Unanswered as error:
            raise EngineAway(f"the engine does not answer: {error}", request_sent=True) from None
        if answer.status in AWAY_STATUSES:
            raise EngineAway(f"the engine is starting or stopping ({answer.status})", request_sent=True)
        return answer


def sendable(token: str) -> bool:
    """Whether this may stand in a header."""
    return token.isascii() and token.isprintable() and 0 < len(token) <= _LONGEST_TOKEN and " " not in token


def _object(answer: Answer) -> dict[str, Any]:
    """What the single sign-on says; nothing where it is no object of JSON."""
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    said = said[0] if isinstance(said, list) and said else said
    return said if isinstance(said, dict) else {}


def given_token(environment: Mapping[str, str] = os.environ) -> str | None:
    """The token of the variable, if it is set. Raises `UserError` for one that no header can hold."""
    token = environment.get(VARIABLE)
    if not token:
        return None
    if not sendable(token):
        raise UserError(
            f"{VARIABLE}: is no token of the engine: it has spaces, or other characters than ASCII"
        )
    return token


class GivenToken:
    """What stands for a log-in of one session."""

    def __init__(self, token: str, address: str) -> None:
        self._token = token
        self._address = address
        self._used = False

    def log_in(self) -> str:
        """Give the token; raises `EngineSetupError` the second time: the engine does not take it then."""
        if self._used:
            raise EngineSetupError(
                f"{self._address}: the engine refuses the token of {VARIABLE}: it is over, or of another"
                " engine; log in again, or unset the variable"
            )
        self._used = True
        return self._token

    def log_out(self, token: str) -> None:
        """Leave the session to the caller, who may need it still."""
