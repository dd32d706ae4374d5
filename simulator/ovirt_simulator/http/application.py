"""The WSGI application: disturbances, single sign-on, the API behind it, and controls."""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from werkzeug import Request, Response

from ovirt_simulator.http import markup, sso
from ovirt_simulator.http.control import Control
from ovirt_simulator.http.markup import API
from ovirt_simulator.http.sso import LoginError, User

_LOG = logging.getLogger(__name__)

_TOKEN_PATHS = ("/ovirt-engine/sso/oauth/token", "/ovirt-engine/sso/oauth/token-http-auth")
_XML = "application/xml"
_VERSION = re.compile("/v([0-9]+)(|/.*)")
_TOKEN_INFO_PATH = "/ovirt-engine/sso/oauth/token-info"  # noqa: S105 - an address
_LOGOUT_PATH = "/ovirt-engine/services/sso-logout"
CONTROL = "/simulator"


class Answering(Protocol):
    """Whatever stands behind the single sign-on: a simulated engine, or a recording."""

    def answer(self, request: Request, path: str, user_name: str, user: User) -> Response: ...


class Application:
    """One engine's whole web face."""

    def __init__(self, api: Answering, control: Control) -> None:
        self._api = api
        self._control = control
        self._tokens = control.tokens
        self._disturbances = control.disturbances

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environ)
        response = self._respond(request)
        response.status = markup.status_line(response.status_code)
        return response(environ, start_response)

    def _respond(self, request: Request) -> Response:
        if request.path.startswith(f"{CONTROL}/"):
            return self._guarded(request)
        disturbance = self._disturbances.take(request.method, request.full_path.rstrip("?"))
        if disturbance is None:
            return self._guarded(request)
        self._disturbances.delay(disturbance)
        if disturbance.drop == "request":
            raise _hung_up()
        if disturbance.status is not None:
            return markup.page(disturbance.status)
        response = self._guarded(request)
        if disturbance.drop == "answer":
            raise _hung_up()
        return response

    def _guarded(self, request: Request) -> Response:
        """Answer; what fails unforeseen is logged, and shown as the container shows it."""
        try:
            return self._route(request)
        except Exception:
            _LOG.exception("%s %s failed", request.method, request.full_path)
            return markup.page(500)

    def _route(self, request: Request) -> Response:
        path = request.path
        if path == API or path.startswith(f"{API}/"):
            return self._authenticated(request, path.removeprefix(API))
        if path in _TOKEN_PATHS:
            return sso.token_servlet(request, self._tokens)
        if path == _TOKEN_INFO_PATH:
            return sso.token_info_servlet(request, self._tokens)
        if path == _LOGOUT_PATH:
            return sso.logout_servlet(request, self._tokens)
        if path == "/ovirt-engine/services/health":
            return Response("DB Up!Welcome to Health Status!", content_type="text/html")
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
        version, path = _version(request, path)
        if version != "4":
            return markup.page(400)
        if request.accept_mimetypes and not request.accept_mimetypes.best_match([_XML]):
            return markup.not_simulated("JSON, or any other form but XML").response
        return self._api.answer(request, path, *identity)

    def _identity(self, request: Request) -> tuple[str, User] | None:
        """Say who asks, by token or by name and password."""
        authorization = request.authorization
        if authorization is None:
            return None
        if authorization.type == "bearer":
            return self._tokens.user(authorization.token or "")
        name, password = authorization.username, authorization.password
        if name is None or password is None:
            return None
        try:
            return name, self._tokens.check(name, password)
        except LoginError:
            return None


def _version(request: Request, path: str) -> tuple[str, str]:
    """Give the version of the API that the address or else a header names, and the path without it."""
    found = _VERSION.fullmatch(path)
    if found is not None:
        return found[1], found[2]
    return request.headers.get("Version") or "4", path


def _hung_up() -> OSError:
    """Make the error on which the server closes the connection without an answer."""
    return ConnectionResetError(errno.ECONNRESET, "disturbed")
