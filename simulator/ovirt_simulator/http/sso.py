"""The single sign-on: tokens for passwords, their life and end, and the servlets that clients talk to."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable

import msgspec
from werkzeug import Request, Response

from ovirt_simulator.http.answers import JSON
from ovirt_simulator.http.users import User, Users

API_SCOPE = "ovirt-app-api"
VALIDATE_SCOPE = "ovirt-ext=token-info:validate"

#: The engine's own life time of an idle session, in seconds.
SESSION_LIFETIME = 1800.0

_NEVER = "9223372036854775807"
_VERIFY = "Unable to log in. Verify your login information or contact the system administrator."


class LoginError(Exception):
    """Credentials that the single sign-on does not take: its code and text."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


class Tokens:
    """The tokens that are valid now. Each use renews a token's life of `lifetime` seconds."""

    def __init__(self, users: Users, lifetime: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._users = users
        self._lifetime = lifetime
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[str, tuple[str, float]] = {}

    def log_in(self, name: str, password: str) -> str:
        """Give a new token; raise `LoginError` when the user or the password is wrong."""
        self.check(name, password)
        return self.issue(name)

    def issue(self, name: str) -> str:
        """Give a new token of a user who has logged in already."""
        token = secrets.token_urlsafe(64)
        with self._lock:
            self._sessions[token] = (name, self._clock() + self._lifetime)
        return token

    def check(self, name: str, password: str) -> User:
        """Give the user with this name and password; raise `LoginError` when one of them is wrong."""
        user_name, at, profile = name.rpartition("@")
        if not at:
            raise LoginError("access_denied", "No profile found in credentials.")
        if not user_name:
            raise LoginError("access_denied", "No user name found in credentials.")
        if profile not in {known.rpartition("@")[2] for known in self._users}:
            raise LoginError("access_denied", "No valid profile found in credentials.")
        user = self._users.get(name)
        if user is None or user.password not in (None, password):
            text = f"Cannot authenticate user '{user_name}@{profile}': {_VERIFY}."
            raise LoginError("access_denied", text)
        return user

    def user(self, token: str) -> tuple[str, User] | None:
        """Whose token this is, renewing it; None when it is unknown or has expired."""
        now = self._clock()
        with self._lock:
            name, end = self._sessions.get(token, ("", now))
            if now >= end:
                self._sessions.pop(token, None)
                return None
            self._sessions[token] = (name, now + self._lifetime)
        return name, self._users[name]

    def is_valid(self, token: str) -> bool:
        """Whether it would be taken now, without renewing it."""
        with self._lock:
            _, end = self._sessions.get(token, ("", 0.0))
            return self._clock() < end

    def revoke(self, token: str) -> None:
        """End one token; an unknown one is no error."""
        with self._lock:
            self._sessions.pop(token, None)

    def revoke_all(self) -> int:
        """End every token, as when the engine restarts; give how many there were."""
        with self._lock:
            count = len(self._sessions)
            self._sessions.clear()
        return count


def token_servlet(request: Request, tokens: Tokens) -> Response:
    """Answer /ovirt-engine/sso/oauth/token: a token for a password."""
    form = request.values
    scope = form.get("scope", "")
    try:
        if request.headers.get("Accept") != JSON:
            raise LoginError("invalid_request", "Missing parameter: 'Accept Header'")
        if form.get("grant_type") != "password":
            raise LoginError(
                "unsupported_grant_type", f"Unsupported grant type '{form.get('grant_type', '')}'."
            )
        if API_SCOPE not in scope.split():
            raise LoginError("invalid_scope", f"The requested scope is invalid: '{scope}'.")
        token = tokens.log_in(form.get("username", ""), form.get("password", ""))
    except LoginError as error:
        return _json(_error(error, scope), 400)
    return _json({"access_token": token, "scope": scope, "exp": _NEVER, "token_type": "bearer"})


def token_info_servlet(request: Request, tokens: Tokens) -> Response:
    """Answer /ovirt-engine/sso/oauth/token-info for the scope of validation: nothing, or an error.

    To validate a token does not renew it. What a trusted client gets to know by its secret is not simulated.
    """
    scope = request.values.get("scope", "")
    if VALIDATE_SCOPE not in scope.split():
        return _json(
            _error(LoginError("invalid_scope", f"The requested scope is invalid: '{scope}'."), ""), 400
        )
    if not tokens.is_valid(request.values.get("token", "")):
        return _json(
            _error(LoginError("invalid_grant", "The provided authorization grant is not valid."), ""), 400
        )
    return _json({})


def logout_servlet(request: Request, tokens: Tokens) -> Response:
    """Answer /ovirt-engine/services/sso-logout: the token, known or not, is valid no more."""
    tokens.revoke(request.values.get("token", ""))
    return _json({})


def _error(error: LoginError, scope: str) -> dict[str, str]:
    """The two spellings of an error: the engine's own for the API's scope, else that of OAuth."""
    if API_SCOPE in scope.split():
        return {"error_code": error.code, "error": error.text}
    return {"error": error.code, "error_description": error.text}


def _json(value: dict[str, str], status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, content_type=JSON)
