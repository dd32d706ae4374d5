"""The API of a simulated engine: from a request by a user who is logged in to its answer."""

from __future__ import annotations

import hashlib
import logging
import re
from base64 import b64encode
from typing import Any
from urllib.parse import unquote

from werkzeug import Request, Response
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import MapAdapter

from ovirt_simulator.core import rejections
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Caller
from ovirt_simulator.http import markup
from ovirt_simulator.http.call import Asked, Call, Follow, FollowError
from ovirt_simulator.http.documents import COLLECTIONS
from ovirt_simulator.http.markup import Refusal, absent, fault, not_simulated
from ovirt_simulator.http.sso import User
from ovirt_simulator.http.table import routes

_LOG = logging.getLogger(__name__)
#: Parameters of the engine's API that would change an answer; it reads past those that it does not know.
_PARAMETERS = (
    "async destroy detail force JobId legacy migration_target_of next_run refresh rsdl schema StepId"
)
_NOTHING = ("false", "f", "no", "n", "0")


class Api:
    """Answers requests below /ovirt-engine/api out of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rendered: dict[str, tuple[tuple[object, ...], str]] = {}
        self._sessions: set[str] = set()
        self._adapter: MapAdapter = routes().bind("")

    def answer(self, request: Request, path: str, user_name: str, user: User) -> Response:
        """Answer a request; `path` is what follows /ovirt-engine/api."""
        self._note(request, user_name)
        plain, matrix = _without_matrix(path)
        asked = Asked(self._engine, request, user_name, user, plain, matrix, self._expand, self._rendered, {})
        call = Call(asked)
        response = self._guarded(call, request, plain)
        response.headers["Correlation-Id"] = call.correlation_id
        return response

    def _note(self, request: Request, user_name: str) -> None:
        """Log a log-in with the first request of a token, and with every one that has none.

        The engine begins a session when a token first comes to its API, not when it is given away.
        """
        authorization = request.authorization
        token = "" if authorization is None else authorization.token or ""
        session = b64encode(hashlib.sha512(token.encode()).digest()).decode()
        if not token or session not in self._sessions:
            self._sessions.add(session)
            caller = Caller(user=f"{user_name}-authz")
            self._engine.events.log_in(request.remote_addr or "", session, caller=caller)

    def _guarded(self, call: Call, request: Request, path: str) -> Response:
        """Answer, with every way of failing turned into the answer that the engine has for it."""
        try:
            return self._dispatch(call, request, path)
        except Refusal as refusal:
            return refusal.response
        except rejections.Rejected as rejected:
            return fault(rejected.http_status, rejected.detail).response
        except rejections.NotFound as missing:
            return fault(404, str(missing)).response
        except (NotFound, MethodNotAllowed) as error:
            if path.strip("/").partition("/")[0] in COLLECTIONS or isinstance(error, MethodNotAllowed):
                return not_simulated(f"{request.method} of {path}").response
            return absent().response
        except FollowError as error:
            _LOG.info("%s %s: %s", request.method, request.full_path, error)
            return markup.page(500, "java.lang.IllegalStateException")

    def _dispatch(self, call: Call, request: Request, path: str) -> Response:
        path = re.sub("/+", "/", path) or "/"
        (answer, root), ids = self._adapter.match(path, request.method)
        for name in _PARAMETERS.split():
            asked = call.parameter(name)
            if asked is not None and asked.lower() not in _NOTHING:
                raise not_simulated(f"the parameter {name!r}")
        result = answer(call, ids)
        if isinstance(result, Response):
            return result
        if root is None:
            return markup.document(result)
        return markup.document(markup.collection(root, _at_most(result, call.number("max"))))

    def _expand(self, call: Call, address: str, tag: str, follow: Follow) -> str:
        """Render what an entity links to, under the name that the entity has for it."""
        try:
            (answer, root), ids = self._adapter.match(unquote(address.removeprefix(markup.API)), "GET")
            result: Any = answer(call.below(follow), ids)
        except NotFound:
            raise not_simulated(f"what is at {address}") from None
        except Refusal as missing:
            if missing.response.status_code == 501:
                raise
            raise FollowError(f"{address}: {missing}") from missing
        return str(result) if root is None else markup.collection(tag, result)


def _without_matrix(path: str) -> tuple[str, dict[str, str]]:
    """Take the parameters out of a path, `/vms;max=2`; those behind its last step count."""
    steps = [step.split(";") for step in path.split("/")]
    pairs = (parameter.partition("=") for parameter in steps[-1][1:])
    return "/".join(step[0] for step in steps), {name: value for name, _, value in pairs}


def _at_most(items: list[str], limit: int | None) -> list[str]:
    """Cut any list to the `max` that the request asks for; -1 asks for none."""
    if limit is None or limit == -1:
        return items
    if limit < 0:
        raise fault(500, f"fromIndex(0) > toIndex({limit})")
    return items[:limit]
