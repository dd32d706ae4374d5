"""Serving an engine over HTTP or HTTPS: connections, the engine's threads, and what they answer."""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import BaseServer
from typing import IO, Any, cast
from urllib.parse import unquote, urlsplit

from werkzeug import Request, Response
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import MapAdapter
from werkzeug.serving import DechunkedInput

from ovirt_service.errors import UserError
from ovirt_service.http.addresses import listening_socket
from ovirt_simulator.core import messages
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http import THREADS, markup
from ovirt_simulator.http.call import Call, Follow, FollowError, parse_follow
from ovirt_simulator.http.control import (
    SERVLETS,
    SESSION_LIFETIME,
    Control,
    LoginError,
    Tokens,
    User,
    Users,
    default_users,
)
from ovirt_simulator.http.markup import API, Refusal, fault, not_simulated
from ovirt_simulator.http.table import routes

#: Answers a request; raises `ConnectionResetError` where it is to be left without an answer.
Answer = Callable[[Request], Response]
#: The files that a server needs to speak TLS: the chain, and the private key.
Certificate = tuple[Path, Path]
#: The engine's `tcp-backlog`: this many connections wait to be accepted, or as many as somaxconn allows.
_BACKLOG = 10_000
#: After this long without a request a connection ends.
_IDLE_SECONDS = 10.0
_PAUSE_SECONDS = 0.1
_LOG = logging.getLogger(__name__)


class _Connection(BaseHTTPRequestHandler):
    """Reads a client's requests, each to its end, and writes the answers."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Server

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):  # for each method
            return self._proceed
        raise AttributeError(name)

    def log_message(self, *_: object) -> None:
        """Log no request."""

    def _proceed(self) -> None:
        size, chunked = self.headers.get("Content-Length", "0"), "Transfer-Encoding" in self.headers
        if not size.isdecimal():
            self.send_error(400)
            return
        if chunked:
            body = DechunkedInput(cast("IO[bytes]", self.rfile)).read()
        elif len(body := self.rfile.read(int(size))) < int(size):
            raise ConnectionResetError(errno.ECONNRESET, "half a request")
        asked = urlsplit(self.path)
        named = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in self.headers.items()}
        environ: dict[str, Any] = {
            **named,
            "REQUEST_METHOD": self.command,
            "PATH_INFO": unquote(asked.path, "latin-1"),
            "QUERY_STRING": asked.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "wsgi.input": io.BytesIO(body),
            "wsgi.input_terminated": True,
        }
        response = self.server.answered(Request(environ))
        self.send_response(response.status_code)
        for header in response.get_wsgi_headers(environ):
            self.send_header(*header)
        self.end_headers()
        self.wfile.writelines(() if self.command == "HEAD" else response.iter_encoded())


class Server(BaseServer):
    """A server that runs until `close`. The API is at `url` + /ovirt-engine/api.

    Connections and requests wait where an engine's do (Undertow's, on XNIO): none is refused. Whatever
    connects is accepted at once, and kept. Requests for which no thread is free wait in order, however many.
    """

    def __init__(
        self, answer: Answer, control: Control, listen: str, certificate: Certificate | None, threads: int
    ) -> None:
        self.tokens = control.tokens
        self.disturbances = control.disturbances
        self._answer = answer
        self._context = None if certificate is None else _tls(certificate)
        host, port = _address(listen)
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._listening = listening_socket(host, port, family, _BACKLOG)
        except OSError as error:
            raise UserError(f"cannot listen on {listen}: {error.strerror or error}") from error
        super().__init__(self._listening.getsockname(), _Connection)
        scheme, host = "http" if certificate is None else "https", listen.rpartition(":")[0]
        self.url = f"{scheme}://{host}:{self._listening.getsockname()[1]}"
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="answering")
        self._connections: dict[threading.Thread, socket.socket] = {}
        self._closed = False
        self._accepting = threading.Thread(target=self._accept, name="http", daemon=True)
        self._accepting.start()

    @property
    def api_url(self) -> str:
        """What the SDK's `Connection` takes as `url`."""
        return f"{self.url}/ovirt-engine/api"

    def answered(self, request: Request) -> Response:
        """Answer as soon as a thread of the engine is free; a closed server resets the connection."""
        try:
            answering = self._threads.submit(self._answer, request)
        except RuntimeError:
            raise ConnectionResetError(errno.ECONNRESET, "closed") from None
        return answering.result()

    def close(self) -> None:
        """Answer what has been asked, and no more, and end every thread; once more is no error."""
        self.disturbances.clear()
        if self._closed:
            return
        self._closed = True
        self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listening.close()
        self._threads.shutdown()
        for thread, connection in tuple(self._connections.items()):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RD)
            thread.join()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, address = self._listening.accept()
            except OSError as error:
                if not self._closed:
                    _LOG.error("a connection was not accepted: %s", error)
                    time.sleep(_PAUSE_SECONDS)
                continue
            thread = threading.Thread(target=self._talk, args=(connection, address), name="connection")
            self._connections[thread] = connection
            thread.daemon = True
            thread.start()

    def _talk(self, connection: socket.socket, address: Any) -> None:
        try:
            with connection, contextlib.suppress(OSError):  # its peer has gone, or speaks no TLS
                if self._context is not None:
                    connection.settimeout(_IDLE_SECONDS)
                    connection = self._context.wrap_socket(connection, server_side=True)
                    self._connections[threading.current_thread()] = connection
                with connection:
                    _Connection(connection, address, self)
        finally:
            del self._connections[threading.current_thread()]


def serve(
    engine: Engine,
    listen: str = "127.0.0.1:0",
    *,
    password: str | None = "password",  # noqa: S107 - a simulator's, known to all
    users: Users | None = None,
    token_lifetime: float = SESSION_LIFETIME,
    certificate: Certificate | None = None,
    threads: int = THREADS,
) -> Server:
    """Serve an engine at `HOST:PORT` (port 0 takes any free one) and return at once.

    `users` replaces the default ones, admin, reader and user @internal, all with `password` (None: any). A
    token that is idle for `token_lifetime` real seconds expires. With a certificate the server speaks TLS. Of
    requests, `threads` are answered at once, and more wait. Nothing here advances the engine. Raises
    `UserError` when the address cannot be had.
    """
    tokens = Tokens(default_users(password) if users is None else users, token_lifetime)
    control = Control(tokens, engine)
    return Server(Application(engine, control), control, listen, certificate, threads)


def _tls(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(*certificate)
    except OSError as error:  # unreadable, or the SSLError of what is no certificate
        files = ", ".join(map(str, certificate))
        raise UserError(f"{files}: not a PEM certificate and its key: {error}") from error
    return context


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise UserError(f"--listen {listen}: an address is HOST:PORT, such as 127.0.0.1:8080")
    return host.strip("[]"), int(port)


# -- What is answered: disturbances, single sign-on, the API of an engine behind it, and controls.
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
        self._rendered: dict[str, tuple[object, str]] = {}
        self._adapter: MapAdapter = routes().bind("")

    def __call__(self, request: Request) -> Response:
        if request.path.startswith(f"{CONTROL}/"):
            return self._guarded(request)
        disturbances = self._control.disturbances
        disturbance = disturbances.pop_disturbance(request.method, request.full_path.rstrip("?"))
        if disturbance is None:
            return self._guarded(request)
        disturbances.delay(disturbance)
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
        path = request.path
        if path == API or path.startswith(f"{API}/"):
            return self._authenticated(request, path.removeprefix(API))
        if servlet := SERVLETS.get(path):
            return servlet(request, self._control.tokens)
        if path.startswith(f"{CONTROL}/"):
            return self._control(request, path.removeprefix(CONTROL))
        return markup.page(404)

    def _authenticated(self, request: Request, path: str) -> Response:
        """Answer one who says by a token, or by name and password, who asks."""
        given, identity = request.authorization, None
        if given is not None and given.type == "bearer":
            identity = self._control.tokens.user(given.token or "")
        elif given is not None and given.username is not None and given.password is not None:
            with contextlib.suppress(LoginError):
                identity = given.username, self._control.tokens.check(given.username, given.password)
        if identity is None:
            response = markup.page(401)
            response.headers["WWW-Authenticate"] = 'Basic realm="RESTAPI"'
            return response
        self._control.made[identity[0]] += 1
        if request.accept_mimetypes and not request.accept_mimetypes.best_match([markup.PLAIN_XML]):
            return not_simulated("JSON, or any other form but XML").response
        return self._answer(request, path, *identity)

    # -- The API, at what follows /ovirt-engine/api.

    def _answer(self, request: Request, path: str, user_name: str, user: User) -> Response:
        """Answer, with every way of failing turned into the answer that the engine has for it."""
        follow = parse_follow(request.args.get("follow", ""))
        call = Call(self._engine, request, user_name, user, path, self._expand, self._rendered, follow)
        try:
            response = self._dispatch(call, request, path)
        except Refusal as refusal:
            response = refusal.response
        except messages.Rejected as rejected:
            response = fault(rejected.http_status, rejected.detail).response
        except messages.NotFound as missing:
            response = fault(404, str(missing)).response
        except (NotFound, MethodNotAllowed):
            response = not_simulated(f"{request.method} of {path}").response
        except FollowError as error:
            _LOG.info("%s %s: %s", request.method, request.full_path, error)
            response = markup.page(500, "java.lang.IllegalStateException")
        response.headers["Correlation-Id"] = call.correlation_id
        return response

    def _dispatch(self, call: Call, request: Request, path: str) -> Response:
        (answer, root), ids = self._adapter.match(re.sub("/+", "/", path) or "/", request.method)
        for name in _PARAMETERS.split():
            asked = call.parameter(name)
            if asked is not None and asked.lower() not in _NOTHING:
                raise not_simulated(f"the parameter {name!r}")
        result = answer(call, ids)
        if isinstance(result, Response):
            return result
        if root is not None:
            result = markup.collection(root, _at_most(result, call.number("max")))
        return markup.document(result)

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
