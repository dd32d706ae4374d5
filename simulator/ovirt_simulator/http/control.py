"""What is besides the API, and answered with JSON: the single sign-on, and the addresses under /simulator.

A small table of users stands in place of the engine's roles and permissions. Of time, accidents and
disturbances, without a log-in, `_ANSWERS` lists the addresses; docs/simulator.md says what each does.
"""

import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache, partial
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import convert
from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, MapAdapter, Rule

from ovirt_placement.model import state_file
from ovirt_simulator.core.backend import MigrationFault, UpgradeFault
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
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
            ended, self._sessions = self._sessions, {}
        return len(ended)


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


#: The single sign-on, by path.
SERVLETS = {
    "/ovirt-engine/sso/oauth/token": token_servlet,
    "/ovirt-engine/sso/oauth/token-info": token_info_servlet,
    "/ovirt-engine/services/sso-logout": logout_servlet,
}


# -- The simulator's own addresses.
Content = TypeVar("Content")


class Advance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much simulated time shall pass."""

    seconds: float


class Control:
    """Answers requests below /simulator."""

    def __init__(self, tokens: Tokens, engine: Engine) -> None:
        #: Requests that got past the log-in, by the user's full name.
        self.made: Counter[str] = Counter()
        self.tokens = tokens
        self.disturbances = Disturbances()
        self.engine = engine

    def __call__(self, request: Request, path: str) -> Response:
        try:
            endpoint, arguments = _addresses().match(path, request.method)
            found = endpoint(self, request, **arguments)
            return found if isinstance(found, Response) else markup.json({} if found is None else found)
        except HTTPException as error:
            return markup.json({"error": error.description}, error.code or 500)
        except (msgspec.DecodeError, re.error, ValueError) as error:
            return markup.json({"error": str(error)}, 400)
        except Rejected as error:
            return markup.json({"error": str(error)}, error.http_status)
        except LookupError as error:
            return markup.json({"error": f"no such thing: {error}"}, 404)


def _advance(control: Control, request: Request) -> dict[str, Any]:
    control.engine.advance(_read(request, Advance).seconds)
    return {"now": control.engine.queries.now}


def _expect(control: Control, request: Request, kind: type[MigrationFault | UpgradeFault], of: str) -> None:
    """Let the next `count` of a kind go wrong, of the VM or host that is named, if one is."""
    asked = _read(request, dict[str, Any])
    count, identity = convert(asked.pop("count", 1), int), convert(asked.pop(of, None), str | None)
    control.engine.faults.expect(convert(asked, kind), count, identity)


_ANSWERS: dict[str, Callable[..., Any]] = {
    "GET /state": lambda control, _: Response(
        state_file.dumps(control.engine.snapshot()), content_type=markup.JSON
    ),
    "POST /advance": _advance,
    "POST /hosts/<host>/fail": lambda control, _, host: control.engine.hosts.fail(host),
    "POST /hosts/<host>/recover": lambda control, _, host: control.engine.hosts.recover(host),
    "POST /hosts/<host>/updates": lambda control, _, host: control.engine.host_upgrades.offer(host),
    "POST /vms/<vm>/crash": lambda control, _, vm: control.engine.vms.crash(vm),
    "POST /migrations/faults": partial(_expect, kind=MigrationFault, of="vm"),
    "POST /upgrades/faults": partial(_expect, kind=UpgradeFault, of="host"),
    "POST /disturbances": lambda control, asked: control.disturbances.add(_read(asked, Disturbance)),
    "DELETE /disturbances": lambda control, _: control.disturbances.clear(),
    "POST /tokens/expire": lambda control, _: {"expired": control.tokens.revoke_all()},
    "GET /requests": lambda control, _: dict(control.made),
}


@cache
def _addresses() -> MapAdapter:
    """Made once: it takes longer than all the rest of a simulator's start."""
    found = ((address.split(" "), answer) for address, answer in _ANSWERS.items())
    return Map([Rule(path, endpoint=answer, methods=[method]) for (method, path), answer in found]).bind("")


def _read(request: Request, content: type[Content]) -> Content:
    return msgspec.json.decode(request.get_data(), type=content)


# -- What goes wrong between client and engine on demand: errors, slow and lost answers.
#: Where an answer gets lost: with the request, which is then never carried out, or on its way back.
Drop = Literal["request", "answer"]


class Disturbance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens to requests that fit, in place of or on top of their answer."""

    #: Only this method; None fits all.
    method: str | None = None
    #: A regular expression that must occur in the path and query.
    path: str = ""
    #: Answer with this status and the container's page, and carry nothing out.
    status: int | None = None
    #: Wait this many real seconds first, or until the disturbances are cleared.
    delay_seconds: float = 0.0
    #: Hang up before or after carrying the request out.
    drop: Drop | None = None
    #: For how many requests; None for all to come.
    times: int | None = 1


class Disturbances:
    """The disturbances to come; the first one that fits a request is the one it meets."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Disturbance] = []
        self._cleared = threading.Event()

    def add(self, disturbance: Disturbance) -> None:
        re.compile(disturbance.path)
        with self._lock:
            self._waiting.append(disturbance)

    def clear(self) -> None:
        """Have none any more: what was delayed goes on at once."""
        with self._lock:
            self._waiting.clear()
            cleared, self._cleared = self._cleared, threading.Event()
        cleared.set()

    def delay(self, disturbance: Disturbance) -> None:
        """Wait as long as this one says."""
        with self._lock:
            cleared = self._cleared
        cleared.wait(disturbance.delay_seconds)

    @property
    def waiting(self) -> list[Disturbance]:
        """Those that have not been used up."""
        with self._lock:
            return list(self._waiting)

    def pop_disturbance(self, method: str, path: str) -> Disturbance | None:
        """Give what this request meets, if anything, and use it up by one."""
        with self._lock:
            for index, found in enumerate(self._waiting):
                if found.method in (None, method) and re.search(found.path, path):
                    if found.times is not None:
                        left = msgspec.structs.replace(found, times=found.times - 1)
                        self._waiting[index : index + 1] = [left] * (found.times > 1)
                    return found
        return None
