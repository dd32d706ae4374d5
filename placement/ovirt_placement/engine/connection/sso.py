"""The engine's single sign-on: log-ins of our account and of people, and a token that the caller has given.

Source: what the engine's own SDK sends, and the engine's OAuthTokenServlet and its SsoLogoutServlet.
"""

import json
import os
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import ovirtsdk4

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.exchanges import Answer, Trust, ask_once
from ovirt_placement.engine.connection.failures import (
    AWAY_STATUSES,
    Cause,
    EngineAway,
    EngineSetupError,
    Unanswered,
    has_no_role,
)
from ovirt_placement.engine.connection.log_ins import TROUBLES, LogInRefused, LogIns, Password
from ovirt_service.errors import UserError

_LOG_IN: Final = "/ovirt-engine/sso/oauth/token"
_LOG_OUT: Final = "/ovirt-engine/services/sso-logout"
_SCOPE: Final = "ovirt-app-api"
#: The engine forgets a session by itself: its end is not waited for any longer.
_LOG_OUT_SECONDS: Final = 0.5
_TOKEN_INFO: Final = "/ovirt-engine/sso/oauth/token-info"  # noqa: S105 - an address
#: Validates a token without a secret, and without prolonging its session.
_VALIDATE: Final = "ovirt-ext=token-info:validate"
_LONGEST_TOKEN: Final = 4096
VARIABLE: Final = "OVIRT_TOKEN"
_HEADERS: Final = {"Accept": "application/json", "User-Agent": f"PythonSDK/{ovirtsdk4.get_version()}"}


def trust_of(settings: EngineSettings) -> Trust:
    """Whose certificates count for an engine."""
    return Trust(None if settings.ca_file is None else str(settings.ca_file), settings.insecure)


def _root_of(settings: EngineSettings) -> str:
    parts = urlsplit(settings.url or "")
    return f"{parts.scheme}://{parts.netloc}"


def _log_in_form(name: str | None, password: str) -> dict[str, str]:
    return {"grant_type": "password", "scope": _SCOPE, "username": name or "", "password": password}


class SingleSignOn:
    """The single sign-on of one engine, for one account; for any thread."""

    def __init__(
        self,
        settings: EngineSettings,
        password: Callable[[], Password],
        *,
        log_ins: LogIns,
        ended: Callable[[], bool],
    ) -> None:
        """`password` reads it, for each log-in again; `ended` breaks off what is under way."""
        self._settings = settings
        self._read_password = password
        self._log_ins = log_ins
        self._ended = ended

    def log_in(self) -> str:
        """Give a new token.

        Raises `LogInRefused`, also without asking if the engine has refused the password lately,
        `Unanswered`, and `UserError` if the password cannot be read.
        """
        password = self._read_password()
        form = _log_in_form(self._settings.username, password.text)
        with self._log_ins.trying(password.mark):
            answer = self._ask_sso(_LOG_IN, form, self._settings.timeout_seconds, self._ended)
            if "error" in answer:
                raise _refusal(answer)
            token = answer.get("access_token")
            if not isinstance(token, str) or not token.isascii() or not token.isprintable():
                raise Unanswered(Cause.NO_ENGINE, "the log-in was answered without a token")
        return token

    def log_out(self, token: str) -> None:
        """Have the engine forget a token; raises `Unanswered` if it does not say so soon."""
        self._ask_sso(_LOG_OUT, {"scope": _SCOPE, "token": token}, _LOG_OUT_SECONDS, lambda: False)

    def _ask_sso(
        self, path: str, form: dict[str, str], seconds: float, ended: Callable[[], bool]
    ) -> dict[str, Any]:
        url, trust = _root_of(self._settings) + path, trust_of(self._settings)
        answer = ask_once(url, form, _HEADERS, trust=trust, seconds=seconds, ended=ended)
        if answer.status in AWAY_STATUSES:
            raise Unanswered(Cause.UNSENT, f"HTTP status {answer.status}")
        said = _object_of(answer)
        if said is None:
            raise Unanswered(Cause.NO_ENGINE, "the log-in was not answered with an object of JSON")
        return said


def _object_of(answer: Answer) -> dict[str, Any] | None:
    """What the single sign-on says; None where it is no object of JSON."""
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    said = said[0] if isinstance(said, list) and said else said
    return said if isinstance(said, dict) else None


def _refusal(answer: dict[str, Any]) -> LogInRefused:
    """Read both spellings: OAuth's, and the one that the engine has for the scope of its API."""
    if "error_description" in answer:
        return LogInRefused(str(answer["error"]), str(answer["error_description"]))
    return LogInRefused(str(answer.get("error_code")), str(answer["error"]))


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
        self._root, self._trust = _root_of(settings), trust_of(settings)
        self._seconds = settings.timeout_seconds

    def log_in(self, name: str, password: str) -> str:
        """A new token for a name with its profile; raises `Refused` without the engine's reason."""
        said = _object_of(self._post(_LOG_IN, _log_in_form(name, password))) or {}
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
        self._post(_LOG_OUT, {"scope": _SCOPE, "token": token})

    def get(self, token: str, path: str, **query: str) -> bytes:
        """Read `/` and the like as XML in the name of the person.

        Raises `Refused` where the engine does not take the token, or does not let the person read this.
        """
        if not sendable(token):
            raise Refused("the engine does not take this token")
        headers = {"Accept": "application/xml", "Authorization": f"Bearer {token}"}
        url = f"{self._api}{path}{f'?{urlencode(query)}' if query else ''}"
        answer = self._ask_sso(url, None, headers)
        if answer.status == HTTPStatus.OK:
            return answer.body
        if answer.status in (*AWAY_STATUSES, HTTPStatus.INTERNAL_SERVER_ERROR):
            raise EngineAway(f"the engine answers {answer.status}", request_sent=True)
        if answer.status == HTTPStatus.UNAUTHORIZED and has_no_role(answer.body):
            raise NoRole("no role was granted to this person")
        raise Refused(f"the engine answers {answer.status} to {path}")

    def _post(self, path: str, form: dict[str, str]) -> Answer:
        answer = self._ask_sso(self._root + path, form, _HEADERS)
        if answer.status in AWAY_STATUSES:
            raise EngineAway(f"the engine is starting or stopping ({answer.status})", request_sent=True)
        return answer

    def _ask_sso(self, url: str, form: dict[str, str] | None, headers: Mapping[str, str]) -> Answer:
        try:
            return ask_once(url, form, headers, trust=self._trust, seconds=self._seconds)
        except Unanswered as error:
            raise EngineAway(f"the engine does not answer: {error}", request_sent=True) from None


def sendable(token: str) -> bool:
    """Whether this may stand in a header."""
    return token.isascii() and token.isprintable() and 0 < len(token) <= _LONGEST_TOKEN and " " not in token


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
