"""The single sign-on: who may log in, tokens for passwords, and the servlets that clients talk to.

A small table of users stands in place of the engine's roles and permissions.
"""

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec
from werkzeug import Request, Response

from ovirt_simulator.http import markup


class Permit(StrEnum):
    """The permits that the resources here ask for, as the REST API spells them."""

    EDIT_VM_PROPERTIES = "edit_vm_properties"
    MIGRATE_VM = "migrate_vm"
    RUN_VM = "run_vm"
    STOP_VM = "stop_vm"
    EDIT_HOST_CONFIGURATION = "edit_host_configuration"
    EDIT_STORAGE_POOL_CONFIGURATION = "edit_storage_pool_configuration"
    MANIPULATE_HOST = "manipulate_host"
    MANIPULATE_AFFINITY_GROUPS = "manipulate_affinity_groups"
    TAG_MANAGEMENT = "tag_management"
    INJECT_EXTERNAL_EVENTS = "inject_external_events"
    EDIT_CLUSTER_CONFIGURATION = "edit_cluster_configuration"


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user with its permits.

    An `admin` has a role of type admin. Any other user's queries are filtered: they show nothing, and are
    denied for affinity groups, labels and scheduling policies.
    """

    #: None lets any password in.
    password: str | None
    admin: bool = False
    permits: frozenset[Permit] = frozenset()


#: Users by full name, name@profile.
Users = Mapping[str, User]


def default_users(password: str | None) -> dict[str, User]:
    """The users of a simulator that was given none, all with one password.

    `admin@internal` is a SuperUser, `reader@internal` a ReadOnlyAdmin, `user@internal` may just log in.
    """
    return {
        "admin@internal": User(password=password, admin=True, permits=frozenset(Permit)),
        "reader@internal": User(password=password, admin=True),
        "user@internal": User(password=password),
    }


_API_SCOPE = "ovirt-app-api"
#: The engine's own life time of an idle session, in seconds.
SESSION_LIFETIME = 1800.0
_NEVER = "9223372036854775807"


class LoginError(Exception):
    """Credentials that the single sign-on does not take; the text is the engine's."""


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
        token = secrets.token_urlsafe(64)
        with self._lock:
            self._sessions[token] = (name, self._clock() + self._lifetime)
        return token

    def check(self, name: str, password: str) -> User:
        """Give the user with this name and password; raise `LoginError` when one of them is wrong."""
        user, (_, at, profile) = self._users.get(name), name.rpartition("@")
        if not at:
            raise LoginError("No profile found in credentials.")
        if profile not in {known.rpartition("@")[2] for known in self._users}:
            raise LoginError("No valid profile found in credentials.")
        if user is None or user.password not in (None, password):
            raise LoginError(
                f"Cannot authenticate user '{name}': Unable to log in. Verify your login information or"
                " contact the system administrator.."
            )
        return user

    def user(self, token: str, *, renew: bool = True) -> tuple[str, User] | None:
        """Whose token this is, renewing it; None when it is unknown or has expired."""
        now = self._clock()
        with self._lock:
            name, end = self._sessions.get(token, ("", now))
            if now >= end:
                self._sessions.pop(token, None)
                return None
            if renew:
                self._sessions[token] = (name, now + self._lifetime)
        return name, self._users[name]

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
    try:
        token = tokens.log_in(form.get("username", ""), form.get("password", ""))
    except LoginError as error:
        return markup.json({"error_code": "access_denied", "error": str(error)}, 400)
    return markup.json({"access_token": token, "scope": _API_SCOPE, "exp": _NEVER, "token_type": "bearer"})


def token_info_servlet(request: Request, tokens: Tokens) -> Response:
    """Answer /ovirt-engine/sso/oauth/token-info: an error or nothing; to validate a token renews none."""
    if tokens.user(request.values.get("token", ""), renew=False) is None:
        text = "The provided authorization grant is not valid."
        return markup.json({"error": "invalid_grant", "error_description": text}, 400)
    return markup.json({})


def logout_servlet(request: Request, tokens: Tokens) -> Response:
    """Answer /ovirt-engine/services/sso-logout: the token, known or not, is valid no more."""
    tokens.revoke(request.values.get("token", ""))
    return markup.json({})
