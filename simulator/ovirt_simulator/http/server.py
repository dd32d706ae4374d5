"""Serving an engine over HTTP or HTTPS, with threads and kept-alive connections."""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cheroot import wsgi
from cheroot.server import HTTPConnection
from cheroot.ssl.builtin import BuiltinSSLAdapter

from ovirt_service.errors import UserError
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http import THREADS
from ovirt_simulator.http.application import Application
from ovirt_simulator.http.control import Control
from ovirt_simulator.http.sso import SESSION_LIFETIME, Tokens, Users, default_users

#: A WSGI application.
WebFace = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
#: The engine's `tcp-backlog`: this many connections wait to be accepted, or as many as somaxconn allows.
_BACKLOG = 10_000


@dataclass(frozen=True)
class Certificate:
    """The files that a server needs to speak TLS."""

    chain: Path
    private_key: Path


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
        """Begin to count, for nobody else: a table that the base keeps would hold each server for ever."""
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
        return BuiltinSSLAdapter(certificate.chain, certificate.private_key)
    except OSError as error:  # unreadable, or the SSLError of what is no certificate
        raise UserError(
            f"{certificate.chain}, {certificate.private_key}: not a PEM certificate and its key: {error}"
        ) from error


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise UserError(f"--listen {listen}: an address is HOST:PORT, such as 127.0.0.1:8080")
    return host.strip("[]"), int(port)
