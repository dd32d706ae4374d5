"""How many connections there may be, and who has to go for another: pure bookkeeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

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
        if not even_busy and not self._has_had_its_time(victim, now):
            return False
        self.close(victim)
        return True

    def _has_had_its_time(self, connection: Guest, now: float) -> bool:
        """Whether the client of a connection, which is to do something, had long enough for that."""
        patience = self._between_calls if _rests(connection) else self._for_a_call
        return now - (connection.waiting_since or now) > patience


def _rests(connection: Guest) -> bool:
    return connection.has_called and connection.idle
