"""Accepts connections at once, whatever else is going on, and serves each in its own thread."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable

from ..errors import UserError
from .access import Gate, split_address
from .request import Head, HttpError, Limits, RequestReader
from .response import TEXT, Response, render

log = logging.getLogger(__name__)

#: Answers a request. Raises `HttpError` for one that it refuses.
Answer = Callable[[Head, RequestReader], Response]


class Connection:
    """A client's connection, served by a thread of its own."""

    def __init__(self, client: socket.socket, context: ssl.SSLContext | None, limits: Limits) -> None:
        self._client = client
        self._context = context
        self._limits = limits
        #: When it began to wait for its next request; None while one is under way.
        self.idle_since: float | None = time.monotonic()

    def serve(self, answer: Answer) -> None:
        """Answer requests until the client leaves, errs, or is silent for too long."""
        try:
            self._client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                self._client.settimeout(self._limits.request_seconds)
                self._client = self._context.wrap_socket(self._client, server_side=True)
            reader = RequestReader(self._client, self._limits)
            while self._serve_one(reader, answer):
                self.idle_since = time.monotonic()
        except (OSError, ssl.SSLError):
            pass  # the client has gone, or was too slow
        except Exception:
            log.exception("a connection ended by an error of the proxy's own")
        finally:
            self._client.close()

    def close(self) -> None:
        """End the connection from another thread."""
        with contextlib.suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)

    def _serve_one(self, reader: RequestReader, answer: Answer) -> bool:
        """Answer one request; whether the connection stays."""
        head = None
        try:
            head = reader.read_head()
            if head is None:
                return False
            self.idle_since = None
            response = answer(head, reader)
            stays = head.keeps_alive
        except HttpError as error:
            response = Response(f"{error.sentence}\n".encode(), TEXT, error.status)
            stays = False
        self._client.settimeout(self._limits.request_seconds)
        self._client.sendall(render(response, head, stays))
        if response.afterwards is not None:
            response.afterwards()
        return stays


class Listener:
    """The listening socket and the thread that accepts."""

    def __init__(
        self, listen: str, gate: Gate, context: ssl.SSLContext | None, limits: Limits, most_connections: int
    ) -> None:
        host, port = split_address(listen)
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self._socket = socket.create_server((host, port), family=family, backlog=1024)
        except OSError as error:
            raise UserError(f"cannot listen on {listen}: {error.strerror or error}") from error
        self._gate = gate
        self._context = context
        self._limits = limits
        self._most = most_connections
        self._lock = threading.Lock()
        self._connections: set[Connection] = set()
        self._thread: threading.Thread | None = None
        self._closing = False

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        scheme = "https" if self._context else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"

    def start(self, answer: Answer) -> None:
        self._thread = threading.Thread(target=self._accept, args=[answer], name="accept", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def close(self, grace: float) -> None:
        """Accept no more, let calls under way end for `grace` seconds, then close every connection."""
        self._closing = True
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        expires = time.monotonic() + grace
        for connection in self._current():
            if connection.idle_since is not None:
                connection.close()
        while self._current() and time.monotonic() < expires:
            time.sleep(0.01)
        for connection in self._current():
            connection.close()

    def _accept(self, answer: Answer) -> None:
        while not self._closing:
            try:
                client, address = self._socket.accept()
            except OSError as error:
                if not self._closing:
                    log.error("cannot accept a connection: %s", error)
                    time.sleep(0.05)
                continue
            if not self._gate.admits(address[0]):
                log.warning("refused a connection from %s: it is not among allowed_clients", address[0])
                client.close()
                continue
            self._make_room()
            connection = Connection(client, self._context, self._limits)
            with self._lock:
                self._connections.add(connection)
            threading.Thread(
                target=self._serve, args=[connection, answer], name="connection", daemon=True
            ).start()

    def _serve(self, connection: Connection, answer: Answer) -> None:
        try:
            connection.serve(answer)
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _make_room(self) -> None:
        """When there are as many connections as there may be, the one that is idle the longest has to go."""
        connections = self._current()
        if len(connections) < self._most:
            return
        idle = [(since, each) for each in connections if (since := each.idle_since) is not None]
        victim = min(idle, key=lambda pair: pair[0])[1] if idle else connections[0]
        log.warning("there are %d connections already: closing one", len(connections))
        victim.close()
        with self._lock:
            self._connections.discard(victim)

    def _current(self) -> list[Connection]:
        with self._lock:
            return list(self._connections)
