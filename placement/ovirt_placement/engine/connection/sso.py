"""Logs in to the engine's single sign-on, and out. The token is for the SDK, which does all else.

Source: what the engine's own SDK sends, and the engine's OAuthTokenServlet and its SsoLogoutServlet.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import ovirtsdk4

from ovirt_placement.engine.connection.exchanges import Trust, post
from ovirt_placement.engine.connection.log_ins import LogInRefused, LogIns
from ovirt_placement.engine.connection.password import Password
from ovirt_placement.engine.connection.unanswered import Cause, Unanswered

#: A web server answers these for an engine that starts or stops.
AWAY_STATUSES = frozenset({502, 503, 504})
LOG_IN: Final = "/ovirt-engine/sso/oauth/token"
LOG_OUT: Final = "/ovirt-engine/services/sso-logout"
SCOPE: Final = "ovirt-app-api"
#: The engine forgets a session by itself: nobody waits longer to end it.
_LOG_OUT_SECONDS: Final = 0.5


class SingleSignOn:
    """The single sign-on of one engine, for one account; for any thread."""

    def __init__(
        self,
        url: str,
        username: str,
        password: Callable[[], Password],
        *,
        log_ins: LogIns,
        ended: Callable[[], bool],
        trust: Trust,
        timeout: float,
    ) -> None:
        """`password` reads it, for each log-in again; `ended` breaks off what is under way."""
        parts = urlsplit(url)
        self._root = f"{parts.scheme}://{parts.netloc}"
        self._username = username
        self._read_password = password
        self._log_ins = log_ins
        self._ended = ended
        self._trust = trust
        self._timeout = timeout

    def log_in(self) -> str:
        """Give a new token.

        Raises `LogInRefused`, also without asking if the engine has refused the password lately,
        `Unanswered`, and `UserError` if the password cannot be read.
        """
        password = self._read_password()
        form = {
            "grant_type": "password",
            "scope": SCOPE,
            "username": self._username,
            "password": password.text,
        }
        with self._log_ins.trying(password.mark):
            answer = self._ask(LOG_IN, form, self._timeout, self._ended)
            if "error" in answer:
                raise _refusal(answer)
            token = answer.get("access_token")
            if not isinstance(token, str) or not token.isascii() or not token.isprintable():
                raise Unanswered(Cause.NO_ENGINE, "the log-in was answered without a token")
        return token

    def log_out(self, token: str) -> None:
        """Have the engine forget a token; raises `Unanswered` if it does not say so soon."""
        self._ask(LOG_OUT, {"scope": SCOPE, "token": token}, _LOG_OUT_SECONDS, lambda: False)

    def _ask(
        self, path: str, form: dict[str, str], seconds: float, ended: Callable[[], bool]
    ) -> dict[str, Any]:
        headers = {"Accept": "application/json", "User-Agent": f"PythonSDK/{ovirtsdk4.get_version()}"}
        answer = post(self._root + path, form, headers, trust=self._trust, seconds=seconds, ended=ended)
        if answer.status in AWAY_STATUSES:
            raise Unanswered(Cause.UNSENT, f"HTTP status {answer.status}")
        try:
            said = json.loads(answer.body)
        except (ValueError, RecursionError):
            raise Unanswered(Cause.NO_ENGINE, "the log-in was not answered with JSON") from None
        said = said[0] if isinstance(said, list) and said else said
        if not isinstance(said, dict):
            raise Unanswered(Cause.NO_ENGINE, "the log-in was answered with JSON that is no object")
        return said


def _refusal(answer: dict[str, Any]) -> LogInRefused:
    """Read both spellings: OAuth's, and the one that the engine has for the scope of its API."""
    if "error_description" in answer:
        return LogInRefused(str(answer["error"]), str(answer["error_description"]))
    return LogInRefused(str(answer.get("error_code")), str(answer["error"]))
