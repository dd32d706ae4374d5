"""The listening socket and its connections: how many there may be, and how slow each may be."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from dataclasses import dataclass

from ovirt_service.addresses import split_address
from ovirt_service.errors import UserError

from .access import Gate
from .connection import Answer, Connection

log = logging.getLogger(__name__)

#: Seconds between looks for slow clients.
_SWEEP_INTERVAL = 0.5

#: The kernel completes connections for us while the event loop is busy; so many may wait.
_BACKLOG = 1024


@dataclass(frozen=True)
class Limits:
    """What a client may take of us."""

    body: int
    connections: int
    idle_seconds: float
    #: How long a begun request may take to come, and its answer to go.
    request_seconds: float


class Listener:
    """Serves a port with one event loop. `answer` gets each request."""

    def __init__(self, listen: str, gate: Gate, limits: Limits, answer: Answer) -> None:
        host, port = split_address(listen)
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except OSError as error:
            raise UserError(f"cannot listen on {listen}: {error.strerror or error}") from error
        self._gate = gate
        self._limits = limits
        self._answer = answer
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.TimerHandle | None = None

    async def start(self, context: ssl.SSLContext | None) -> str:
        """Begin to serve, and return the URL."""
        loop = asyncio.get_running_loop()
        handshake = self._limits.request_seconds if context else None
        self._server = await loop.create_server(
            self._connect, sock=self._socket, ssl=context, ssl_handshake_timeout=handshake, backlog=_BACKLOG
        )
        self._sweep()
        host, port = self._socket.getsockname()[:2]
        return f"{'https' if context else 'http'}://{f'[{host}]' if ':' in host else host}:{port}/"

    async def close(self, grace: float) -> None:
        """Accept no more, let calls under way end for `grace` seconds, then close every connection."""
        if self._server is not None:
            self._server.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        expires = time.monotonic() + grace
        while self._connections and time.monotonic() < expires:
            for connection in list(self._connections):
                if connection.idle:
                    connection.close()
            await asyncio.sleep(0.01)
        for connection in list(self._connections):
            connection.abort()

    def _connect(self) -> Connection:
        return _Admitted(self, self._gate, self._answer, self._limits.body)

    def admit(self, connection: Connection, address: str) -> bool:
        """Count a new connection in, unless it comes from where none may come from."""
        if not self._gate.admits(address):
            log.warning("refused a connection from %s: it is not among allowed_clients", address)
            return False
        if len(self._connections) >= self._limits.connections:
            self._make_room()
        self._connections.add(connection)
        return True

    def forget(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def _make_room(self) -> None:
        """There are as many connections as there may be: the one that is slow the longest has to go."""
        waiting = [(each.waiting_since, each) for each in self._connections if each.waiting_since is not None]
        victim = min(waiting, key=lambda pair: pair[0])[1] if waiting else next(iter(self._connections))
        log.warning("there are %d connections already: closing one", len(self._connections))
        self._connections.discard(victim)
        victim.abort()

    def _sweep(self) -> None:
        """Cut off who is silent for too long, or takes too long to send a request or to read its answer."""
        self._sweeping = asyncio.get_running_loop().call_later(_SWEEP_INTERVAL, self._sweep)
        now = time.monotonic()
        for connection in list(self._connections):
            since = connection.waiting_since
            allowed = self._limits.idle_seconds if connection.idle else self._limits.request_seconds
            if since is not None and now - since > allowed:
                connection.abort()


class _Admitted(Connection):
    """A connection that the listener counts."""

    def __init__(self, listener: Listener, gate: Gate, answer: Answer, longest_body: int) -> None:
        super().__init__(gate.check, answer, longest_body)
        self._listener = listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        if peer is None or not self._listener.admit(self, peer[0]):
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._listener.forget(self)
