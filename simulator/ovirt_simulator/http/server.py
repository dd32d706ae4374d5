"""Serving an engine over HTTP or HTTPS: threads, kept-alive connections, and the WSGI application."""

from __future__ import annotations

import contextlib
import errno
import logging
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cheroot import wsgi
from cheroot.server import HTTPConnection
from cheroot.ssl.builtin import BuiltinSSLAdapter
from werkzeug import Request, Response
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import MapAdapter

from ovirt_service.errors import UserError
from ovirt_simulator.core import messages
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http import THREADS, markup
from ovirt_simulator.http.call import Call, Follow, FollowError
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

#: A WSGI application.
WebFace = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
#: The engine's `tcp-backlog`: this many connections wait to be accepted, or as many as somaxconn allows.
_BACKLOG = 10_000


#: The files that a server needs to speak TLS: the chain, and the private key.
Certificate = tuple[Path, Path]


class _Connection(HTTPConnection):
    """Leaves nothing behind that a peer did not take: from Python 3.13 on, the interpreter reports it."""

    def close(self) -> None:
        """Close the writing end, too, which the base leaves to the garbage collector."""
        super().close()
        with contextlib.suppress(OSError, ValueError):
            self.wfile.close()


class _Threads:
    """What answers a server's requests: at most this many threads, started when a request finds none free.

    More requests wait in a queue without a limit. The methods are those that cheroot calls of its own pool.
    """

    def __init__(self, server: _Listener, most: int) -> None:
        self._server = server
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="answering")
        self._answered: dict[Future[None], HTTPConnection] = {}

    def start(self) -> None:
        """No thread is needed yet."""

    def put(self, conn: HTTPConnection) -> None:
        future = self._pool.submit(self._answer, conn)
        self._answered[future] = conn
        future.add_done_callback(self._answered.pop)

    def stop(self, timeout: float) -> None:
        """Answer what has been asked; of a request that has not come to its end by then, no more is read."""
        asked = dict(self._answered)
        for late in wait(asked, timeout).not_done:
            with contextlib.suppress(OSError):
                asked[late].socket.shutdown(socket.SHUT_RD)
        self._pool.shutdown()

    def _answer(self, conn: HTTPConnection) -> None:
        kept = False
        try:
            kept = conn.communicate()  # type: ignore[no-untyped-call]
        except ConnectionError:
            pass  # its peer has gone
        except Exception:
            self._server.error_log("a request was not answered", level=logging.ERROR, traceback=True)
        finally:
            if kept:
                self._server.put_conn(conn)
            else:
                conn.close()


class _End:
    """A connection that brings something at once, and ends serving when that is to be answered."""

    def __init__(self) -> None:
        self.socket, self._peer = socket.socketpair()
        self._peer.send(b"\0")
        self.rfile = self
        self.last_used = 0.0

    def has_data(self) -> bool:
        return False

    def close(self) -> None:
        self.socket.close()
        self._peer.close()


class _Listener(wsgi.Server):
    """Has connections and requests wait where an engine's do (Undertow's, on XNIO): none is refused.

    Whatever connects is accepted at once. Requests for which no thread is free wait in a queue that has no
    limit. Connections are kept however many there are, and hold no thread while they bring no request.
    """

    keep_alive_conn_limit = sys.maxsize
    ConnectionClass = _Connection

    def __init__(self, address: tuple[str, int], application: WebFace, threads: int) -> None:
        super().__init__(address, application, request_queue_size=_BACKLOG)
        self.requests = _Threads(self, threads)

    def clear_stats(self) -> None:
        """Begin to count, for this server alone: a table of the base would keep each server for ever."""
        super().clear_stats()  # type: ignore[no-untyped-call]
        vars(logging)["statistics"].pop(f"Cheroot HTTPServer {id(self)}")

    def serve(self) -> None:
        """Serve in this thread alone: the base has another, which refuses connections and outlives `stop`."""
        while self.ready:
            try:
                self._connections.run(self.expiration_interval)  # type: ignore[attr-defined]
            except Exception:
                self.error_log("a connection was not accepted", level=logging.ERROR, traceback=True)

    def process_conn(self, conn: HTTPConnection | _End) -> None:
        """Queue a connection for a thread once it brings something; one that is new may not do so yet."""
        if isinstance(conn, _End):
            raise SystemExit  # of the thread that serves: the base sees only now and then that it shall stop
        if conn.last_used is None:
            self.put_conn(conn)
        else:
            self.requests.put(conn)


class Server:
    """A server that runs until `close`. The API is at `url` + /ovirt-engine/api."""

    def __init__(
        self,
        application: WebFace,
        control: Control,
        listen: str,
        certificate: Certificate | None,
        threads: int,
    ) -> None:
        self.tokens = control.tokens
        self.disturbances = control.disturbances
        self._server = _Listener(_address(listen), application, threads)
        if certificate is not None:
            self._server.ssl_adapter = _tls(certificate)
        try:
            self._server.prepare()
        except OSError as error:
            raise UserError(f"cannot listen on {listen}: {error.strerror or error}") from error
        # A port that was free is not asked for so; but who comes after shall have it at once.
        self._server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        scheme, host = "http" if certificate is None else "https", listen.rpartition(":")[0]
        self.url = f"{scheme}://{host}:{self._server.bind_addr[1]}"
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)
        self._thread.start()

    @property
    def api_url(self) -> str:
        """What the SDK's `Connection` takes as `url`."""
        return f"{self.url}/ovirt-engine/api"

    def _serve(self) -> None:
        with contextlib.suppress(SystemExit):
            self._server.serve()

    def close(self) -> None:
        """Answer no more, and end every thread."""
        self.disturbances.clear()
        with contextlib.closing(_End()) as end:
            self._server.put_conn(end)
            self._thread.join()
        self._server.stop()


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


def _tls(certificate: Certificate) -> BuiltinSSLAdapter:
    try:
        return BuiltinSSLAdapter(*certificate)
    except OSError as error:  # unreadable, or the SSLError of what is no certificate
        files = ", ".join(map(str, certificate))
        raise UserError(f"{files}: not a PEM certificate and its key: {error}") from error


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise UserError(f"--listen {listen}: an address is HOST:PORT, such as 127.0.0.1:8080")
    return host.strip("[]"), int(port)


# -- The WSGI application: disturbances, single sign-on, the API of an engine behind it, and controls.
_LOG = logging.getLogger(__name__)

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

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environ)
        response = self._respond(request)
        response.status = markup.status_line(response.status_code)
        return response(environ, start_response)

    def _respond(self, request: Request) -> Response:
        if request.path.startswith(f"{CONTROL}/"):
            return self._guarded(request)
        disturbances = self._control.disturbances
        disturbance = disturbances.pop_disturbance(request.method, request.full_path.rstrip("?"))
        if disturbance is None:
            return self._guarded(request)
        disturbances.delay(disturbance)
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
        call = Call(self._engine, request, user_name, user, path, self._expand, self._rendered)
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
