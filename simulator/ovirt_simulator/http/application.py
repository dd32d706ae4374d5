"""The WSGI application: disturbances, single sign-on, the API of an engine behind it, and controls."""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote

from werkzeug import Request, Response
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import MapAdapter

from ovirt_simulator.core import rejections
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http import markup, sso
from ovirt_simulator.http.call import Call, Follow, FollowError
from ovirt_simulator.http.control import Control
from ovirt_simulator.http.markup import API, Refusal, fault, not_simulated
from ovirt_simulator.http.sso import LoginError, User
from ovirt_simulator.http.table import routes

_LOG = logging.getLogger(__name__)

_SSO = "/ovirt-engine/sso/oauth"
CONTROL = "/simulator"
#: Parameters of the engine's API that would change an answer; it reads past those that it does not know.
_PARAMETERS = (
    "async destroy detail filter force JobId legacy migration_target_of next_run refresh rsdl schema StepId"
)
_NOTHING = ("false", "f", "no", "n", "0")


class Application:
    """One engine's whole web face."""

    def __init__(self, engine: Engine, control: Control) -> None:
        self._engine = engine
        self._control = control
        self._disturbances = control.disturbances
        self._rendered: dict[str, tuple[tuple[object, ...], str]] = {}
        self._adapter: MapAdapter = routes().bind("")

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environ)
        response = self._respond(request)
        response.status = markup.status_line(response.status_code)
        return response(environ, start_response)

    def _respond(self, request: Request) -> Response:
        if request.path.startswith(f"{CONTROL}/"):
            return self._guarded(request)
        disturbance = self._disturbances.take_disturbance(request.method, request.full_path.rstrip("?"))
        if disturbance is None:
            return self._guarded(request)
        self._disturbances.delay(disturbance)
        # On such an error the server closes the connection without an answer.
        hung_up = ConnectionResetError(errno.ECONNRESET, "disturbed")
        if disturbance.drop == "request":
            raise hung_up
        if disturbance.status is not None:
            return markup.page(disturbance.status)
        response = self._guarded(request)
        if disturbance.drop == "answer":
            raise hung_up
        return response

    def _guarded(self, request: Request) -> Response:
        """Answer; what fails unforeseen is logged, and shown as the container shows it."""
        try:
            return self._route(request)
        except Exception:
            _LOG.exception("%s %s failed", request.method, request.full_path)
            return markup.page(500)

    def _route(self, request: Request) -> Response:
        path, tokens = request.path, self._control.tokens
        if path == API or path.startswith(f"{API}/"):
            return self._authenticated(request, path.removeprefix(API))
        if path == f"{_SSO}/token":
            return sso.token_servlet(request, tokens)
        if path == f"{_SSO}/token-info":
            return sso.token_info_servlet(request, tokens)
        if path == "/ovirt-engine/services/sso-logout":
            return sso.logout_servlet(request, tokens)
        if path.startswith(f"{CONTROL}/"):
            return self._control(request, path.removeprefix(CONTROL))
        return markup.page(404)

    def _authenticated(self, request: Request, path: str) -> Response:
        identity = self._identity(request)
        if identity is None:
            response = markup.page(401)
            response.headers["WWW-Authenticate"] = 'Basic realm="RESTAPI"'
            return response
        self._control.made[identity[0]] += 1
        if request.accept_mimetypes and not request.accept_mimetypes.best_match([markup.PLAIN_XML]):
            return not_simulated("JSON, or any other form but XML").response
        return self._answer(request, path, *identity)

    def _identity(self, request: Request) -> tuple[str, User] | None:
        """Say who asks, by token or by name and password."""
        authorization, tokens = request.authorization, self._control.tokens
        if authorization is None:
            return None
        if authorization.type == "bearer":
            return tokens.user(authorization.token or "")
        name, password = authorization.username, authorization.password
        if name is None or password is None:
            return None
        try:
            return name, tokens.check(name, password)
        except LoginError:
            return None

    # -- The API, at what follows /ovirt-engine/api.

    def _answer(self, request: Request, path: str, user_name: str, user: User) -> Response:
        """Answer, with every way of failing turned into the answer that the engine has for it."""
        call = Call(self._engine, request, user_name, user, path, self._expand, self._rendered)
        try:
            response = self._dispatch(call, request, path)
        except Refusal as refusal:
            response = refusal.response
        except rejections.Rejected as rejected:
            response = fault(rejected.http_status, rejected.detail).response
        except rejections.NotFound as missing:
            response = fault(404, str(missing)).response
        except (NotFound, MethodNotAllowed):
            response = not_simulated(f"{request.method} of {path}").response
        except FollowError as error:
            _LOG.info("%s %s: %s", request.method, request.full_path, error)
            response = markup.page(500, "java.lang.IllegalStateException")
        response.headers["Correlation-Id"] = call.correlation_id
        return response

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
            (answer, root), ids = self._adapter.match(unquote(address.removeprefix(API)), "GET")
            result: Any = answer(call.below(follow), ids)
        except NotFound:
            raise not_simulated(f"what is at {address}") from None
        except Refusal as missing:
            if missing.response.status_code == 501:
                raise
            raise FollowError(f"{address}: {missing}") from missing
        return str(result) if root is None else markup.collection(tag, result)


def _at_most(items: list[str], limit: int | None) -> list[str]:
    """Cut any list to the `max` that the request asks for; -1 asks for none."""
    if limit is None or limit == -1:
        return items
    if limit < 0:
        raise fault(500, f"fromIndex(0) > toIndex({limit})")
    return items[:limit]
