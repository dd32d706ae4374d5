"""Accepts connections: as many as there may be, each as slow as it may be; all others wait in the kernel."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from dataclasses import dataclass

from ovirt_service.saying import Complaint

from .access import Gate
from .connection import Answer, Connection
from .opening import BACKLOG, open_socket
from .request import Head
from .room import Room

log = logging.getLogger(__name__)

#: Seconds between looks for slow clients.
_SWEEP_INTERVAL = 0.5

#: This many connections are accepted before others are heard again.
_AT_ONCE = 16

#: Seconds that clients have at the end to send what they began, and to read what is theirs.
_LAST_SECONDS = 1.0

#: A client that wants TLS has so long before others may take its place.
_BEFORE_TLS = 1.0

#: Seconds until the next try where there is no room, or no file descriptor.
_PAUSE = 0.01
_LONG_PAUSE = 0.5


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
        self._socket = open_socket(listen)
        self._socket.setblocking(False)
        self._gate = gate
        self._limits = limits
        self._answer = answer
        self._room = Room(limits.connections)
        self._context: ssl.SSLContext | None = None
        self._loop = asyncio.get_running_loop()
        #: Connections that are being made, and since when.
        self._entering: dict[asyncio.Task[None], float] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._scarce = Complaint(
            log, "connections wait, for the proxy cannot accept them", "connections are accepted again"
        )

    def start(self, context: ssl.SSLContext | None) -> str:
        """Begin to serve, and return the URL."""
        self._context = context
        self._socket.listen(BACKLOG)
        self._resume()
        self._sweep()
        host, port = self._socket.getsockname()[:2]
        return f"{'https' if context else 'http'}://{f'[{host}]' if ':' in host else host}:{port}/"

    async def close(self, grace: float) -> None:
        """Accept no more, let calls under way end for `grace` seconds, then close every connection.

        Who has made no call by now, or does not read its answer, is waited for much shorter.
        """
        for timer in self._timers.values():
            timer.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        began = time.monotonic()
        while (self._room or self._entering) and time.monotonic() < began + grace:
            for connection in self._room.all():
                connection.end()
            self._cut_off(began)
            await asyncio.sleep(0.01)
        for connection in self._room.all():
            connection.abort()
        for task in self._entering:
            task.cancel()
        self._gate.close()

    def _cut_off(self, began: float) -> None:
        """Cut off whom the end, which began at that moment, waits for without success."""
        past = time.monotonic() - _LAST_SECONDS
        for connection in self._room.all():
            since = connection.waiting_since
            if since is not None and max(since, began) < past:
                connection.abort()
        if began < past:
            for task in self._entering:
                task.cancel()

    def _resume(self) -> None:
        self._loop.add_reader(self._socket, self._accept)

    def _pause(self, seconds: float) -> None:
        """Leave new connections to the kernel for a while: it completes them, and they wait."""
        self._loop.remove_reader(self._socket)
        self._timers["accept"] = self._loop.call_later(seconds, self._resume)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            if not self._room.make(len(self._entering)):
                self._give_up_entering()
                self._pause(_PAUSE)
                return
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, ConnectionError):
                return
            except OSError as error:
                self._scarce.say(error.strerror or str(error))
                self._pause(_LONG_PAUSE)
                return
            self._scarce.say("")
            self._enter(accepted, address[0])

    def _enter(self, accepted: socket.socket, address: str) -> None:
        if not self._gate.admits(address):
            log.warning("refused a connection from %s: it is not among allowed_clients", address)
            accepted.close()
            return
        may_call = self._gate.may_call(accepted, address)
        connection = _Standing(self._room, self._gate, may_call, self._answer, self._limits.body)
        task = self._loop.create_task(self._connect(connection, accepted))
        self._entering[task] = time.monotonic()
        task.add_done_callback(self._entering.pop)

    def _give_up_entering(self) -> None:
        """Let nobody keep others out who says too little of TLS."""
        past = time.monotonic() - _BEFORE_TLS
        for task, since in self._entering.items():
            if since < past:
                task.cancel()

    async def _connect(self, connection: Connection, accepted: socket.socket) -> None:
        patience = self._limits.request_seconds if self._context else None
        with contextlib.suppress(OSError):  # a client that went away, or does not speak TLS
            await self._loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self._context, ssl_handshake_timeout=patience
            )

    def _sweep(self) -> None:
        """Cut off who is silent for too long, or takes too long to send a request or to read its answer."""
        self._timers["sweep"] = self._loop.call_later(_SWEEP_INTERVAL, self._sweep)
        now = time.monotonic()
        for connection in self._room.all():
            since = connection.waiting_since
            allowed = self._limits.idle_seconds if connection.idle else self._limits.request_seconds
            if since is not None and now - since > allowed:
                connection.abort()


class _Standing(Connection):
    """A connection that takes room, of a client that may call or may not."""

    def __init__(self, room: Room, gate: Gate, may_call: bool, answer: Answer, longest_body: int) -> None:
        super().__init__(self._judge, answer, longest_body)
        self._room = room
        self._gate = gate
        self._may_call = may_call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._room.add(self, self._may_call)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._room.remove(self)

    def _judge(self, head: Head) -> None:
        self._gate.check(head, self._may_call)
