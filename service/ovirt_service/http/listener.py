"""Accepts connections: as many as there may be, each as slow as it may be; all others wait in the kernel."""

import asyncio
import contextlib
import logging
import resource
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ovirt_service.log import Complaint
from ovirt_service.repetition import Said

log = logging.getLogger(__name__)

#: Seconds that a client has to make a call, or to read its answer, before others may take its place, and
#: between two calls; in a small room. In a larger one it is less: only a flood fills that, and a newcomer
#: waits meanwhile for about as long.
_FOR_A_CALL = 1.0
_BETWEEN_CALLS = 0.1
_SMALL = 40

#: Those who may not call get this part of all connections.
_STRANGERS_SHARE = 8


class Guest(Protocol):
    """A connection that takes room."""

    @property
    def idle(self) -> bool:
        """Whether no part of a request has come and no part of an answer is left to go."""

    @property
    def unsent(self) -> int:
        """Bytes of answers that are left to go."""

    @property
    def has_called(self) -> bool:
        """Whether a request of this client was answered."""

    @property
    def waiting_since(self) -> float | None:
        """Since when the client has been expected to do something; None while it waits for us."""

    def end(self) -> None:
        """Answer no more than the request that has begun, if one has."""

    def abort(self) -> None:
        """End at once."""


class Room:
    """The connections that stand. One that has called before stays longer than one that has said nothing."""

    def __init__(self, most: int, closed: Callable[[], None]) -> None:
        """`closed` hears of each that is closed, be it for another one or since it took too long."""
        self._most = most
        share = _SMALL / max(_SMALL, most)
        self._for_a_call, self._between_calls = _FOR_A_CALL * share, _BETWEEN_CALLS * share
        self.closed = closed
        self._strangers_most = max(1, most // _STRANGERS_SHARE)
        self._callers: set[Guest] = set()
        self._strangers: set[Guest] = set()

    def __len__(self) -> int:
        return len(self._callers) + len(self._strangers)

    def all(self) -> list[Guest]:
        return [*self._callers, *self._strangers]

    def make(self, entering: int) -> bool:
        """Whether one more may come, in addition to those about to; one that is of no use goes for it."""
        if len(self) + entering < self._most:
            return True
        return self._close_one(self._strangers) or self._close_one(self._callers)

    def add(self, connection: Guest, may_call: bool) -> None:
        if not may_call and len(self._strangers) >= self._strangers_most:
            self._close_one(self._strangers, even_busy=True)
        (self._callers if may_call else self._strangers).add(connection)

    def remove(self, connection: Guest) -> None:
        self._callers.discard(connection)
        self._strangers.discard(connection)

    def close(self, connection: Guest) -> None:
        """End one that has had its time."""
        self.remove(connection)
        self.closed()
        connection.abort()

    def _close_one(self, connections: set[Guest], even_busy: bool = False) -> bool:
        """Close the connection that has waited longest for its client. False if none may be closed now.

        One of a client that rests between two calls is the last to go: the engine keeps its own, and those
        who have not called yet will soon have had their time.
        """
        now = time.monotonic()
        idle = [each for each in connections if even_busy or each.waiting_since is not None]
        if not idle:
            return False
        victim = min(idle, key=lambda each: (_rests(each), each.waiting_since or now))
        patience = self._between_calls if _rests(victim) else self._for_a_call
        if not even_busy and now - (victim.waiting_since or now) <= patience:
            return False
        self.close(victim)
        return True


def _rests(connection: Guest) -> bool:
    return connection.has_called and connection.idle


#: The kernel completes connections for us while the event loop is busy; this many may wait.
BACKLOG = 1024

_LEAST_CONNECTIONS = 8

#: Seconds between looks for slow clients.
_SWEEP_INTERVAL = 0.5

#: This many connections are accepted before others are heard again.
_AT_ONCE = 16

#: Seconds that clients have at the end to send what they began, and to read what is theirs.
_LAST_SECONDS = 1.0

#: A client that wants TLS has so long before others may take its place.
_BEFORE_TLS = 0.5

#: Seconds until the next try where there is no room, or no file descriptor.
_PAUSE = 0.01
_LONG_PAUSE = 0.5

#: That connections were closed is said of this many at once, and again after this many seconds: browsers open
#: one or two that they do not use.
_MANY = 10
_QUIET_SECONDS = 60.0


@dataclass(frozen=True)
class Limits:
    """What a client may take of us."""

    connections: int
    #: How long a connection may stand between two calls.
    idle_seconds: float
    #: How long a request may take to come, the first one since the connection was made.
    request_seconds: float
    #: How long an answer may take to go.
    answer_seconds: float


#: Makes a connection of what was accepted from an address, for this room; None of one that may not come in.
Admit = Callable[[socket.socket, str, Room], asyncio.Protocol | None]


class Listener:
    """Serves a listening socket with one event loop. `admit` makes the connections."""

    def __init__(
        self, listening: socket.socket, limits: Limits, admit: Admit, closed: Callable[[], None]
    ) -> None:
        """`closed` hears of each connection that is closed since its client took too long."""
        self._socket = listening
        self._socket.setblocking(False)
        self._limits = limits
        self._admit = admit
        self._closed = closed
        self._said = Said(_QUIET_SECONDS)
        #: How many were closed since the last look.
        self._lately = 0
        self._room = Room(limits.connections, self._count)
        self._context: ssl.SSLContext | None = None
        self._loop = asyncio.get_running_loop()
        #: Guests that are being made, and since when.
        self._entering: dict[asyncio.Task[None], float] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._scarce = Complaint(
            log, "connections wait, for they cannot be accepted", "connections are accepted again"
        )

    def start(self, context: ssl.SSLContext | None) -> str:
        """Begin to serve, and return the URL."""
        self._context = context
        self._socket.listen(BACKLOG)
        self._resume()
        self._sweep()
        host, port = self._socket.getsockname()[:2]
        return f"{'https' if context else 'http'}://{f'[{host}]' if ':' in host else host}:{port}/"

    def stop(self) -> None:
        """Accept no more."""
        for timer in self._timers.values():
            timer.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()

    async def close(self, grace: float) -> None:
        """Accept no more, let calls under way end for `grace` seconds, then close every connection.

        Who has made no call by now, or does not read its answer, is waited for much shorter.
        """
        self.stop()
        began = time.monotonic()
        while (self._room or self._entering) and time.monotonic() < began + grace:
            past = time.monotonic() - _LAST_SECONDS
            for connection in self._room.all():
                connection.end()
                since = connection.waiting_since
                if since is not None and max(since, began) < past:
                    connection.abort()
            if began < past:
                self._give_up_entering(0.0)
            await asyncio.sleep(0.01)
        for connection in self._room.all():
            connection.abort()
        self._give_up_entering(0.0)

    def _resume(self) -> None:
        self._loop.add_reader(self._socket, self._accept)

    def _pause(self, seconds: float) -> None:
        """Leave new connections to the kernel for a while: it completes them, and they wait."""
        self._loop.remove_reader(self._socket)
        self._timers["accept"] = self._loop.call_later(seconds, self._resume)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            if not self._room.make(len(self._entering)):
                self._give_up_entering(_BEFORE_TLS)
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
        connection = self._admit(accepted, address, self._room)
        if connection is None:
            accepted.close()
            return
        task = self._loop.create_task(self._connect(connection, accepted))
        self._entering[task] = time.monotonic()
        task.add_done_callback(self._entering.pop)

    def _give_up_entering(self, patience_seconds: float) -> None:
        """Let no client keep others out that says too little of TLS."""
        past = time.monotonic() - patience_seconds
        for task, since in self._entering.items():
            if since <= past:
                task.cancel()

    async def _connect(self, connection: asyncio.Protocol, accepted: socket.socket) -> None:
        patience = self._limits.request_seconds if self._context else None
        with contextlib.suppress(OSError):  # a client that went away, or does not speak TLS
            try:
                await self._loop.connect_accepted_socket(
                    lambda: connection, accepted, ssl=self._context, ssl_handshake_timeout=patience
                )
            except (ConnectionAbortedError, asyncio.CancelledError):  # too little of TLS came, for too long
                self._count()
                raise

    def _sweep(self) -> None:
        """Cut off who is silent for too long, or takes too long to send a request or to read its answer."""
        self._timers["sweep"] = self._loop.call_later(_SWEEP_INTERVAL, self._sweep)
        now = time.monotonic()
        for connection in self._room.all():
            since, rests = connection.waiting_since, _rests(connection)
            patience = self._limits.answer_seconds if connection.unsent else self._limits.request_seconds
            if since is None or now - since <= (self._limits.idle_seconds if rests else patience):
                continue
            if rests:
                connection.abort()
            else:
                self._room.close(connection)
        if self._lately >= _MANY and self._said.is_news("closed"):
            log.warning("connections are closed that send no whole request, or do not read their answer")
        self._lately = 0

    def _count(self) -> None:
        self._lately += 1
        self._closed()


def possible_connections(wanted: int, others: int) -> int:
    """How many connections may stand, once as many descriptors as are wanted, or allowed, are there.

    `others` are for other things, which leave a few for connections in any case.
    """
    limit, (soft, hard) = others + wanted, resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < limit:
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    possible = min(wanted, max(_LEAST_CONNECTIONS, limit - others))
    if possible < wanted:
        log.warning(
            "only %d file descriptors are allowed (LimitNOFILE, ulimit -n): %d connections at a time in place"
            " of %d",
            *(limit, possible, wanted),
        )
    return possible
