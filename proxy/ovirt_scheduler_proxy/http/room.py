"""How many connections there may be, and who has to go for another: pure bookkeeping."""

from __future__ import annotations

import time

from .connection import Connection

#: Seconds that a client has to make a call, or to read its answer, before others may take its place.
_FOR_A_CALL = 1.0
#: And between two calls.
_BETWEEN_CALLS = 0.1

#: Those who may not call get this part of all connections.
_STRANGERS_SHARE = 8


class Room:
    """The connections that stand. One that has called before stays longer than one that has said nothing."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._strangers_most = max(1, most // _STRANGERS_SHARE)
        self._callers: set[Connection] = set()
        self._strangers: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._callers) + len(self._strangers)

    def all(self) -> list[Connection]:
        return [*self._callers, *self._strangers]

    def make(self, entering: int) -> bool:
        """Whether one more may come, in addition to those about to; one that is of no use goes for it."""
        if len(self) + entering < self._most:
            return True
        return _close_one(self._strangers) or _close_one(self._callers)

    def add(self, connection: Connection, may_call: bool) -> None:
        if not may_call and len(self._strangers) >= self._strangers_most:
            _close_one(self._strangers, even_busy=True)
        (self._callers if may_call else self._strangers).add(connection)

    def remove(self, connection: Connection) -> None:
        self._callers.discard(connection)
        self._strangers.discard(connection)


def _close_one(connections: set[Connection], even_busy: bool = False) -> bool:
    """Close the connection that has waited longest for its client. False if none may be closed now.

    One of a client that rests between two calls is the last to go: the engine keeps its own, and those who
    have not called yet will soon have had their time.
    """
    now = time.monotonic()
    idle = [each for each in connections if even_busy or each.waiting_since is not None]
    if not idle:
        return False
    victim = min(idle, key=lambda each: (_rests(each), each.waiting_since or now))
    if not even_busy and not _has_had_its_time(victim, now):
        return False
    connections.discard(victim)
    victim.abort()
    return True


def _rests(connection: Connection) -> bool:
    return connection.has_called and connection.idle


def _has_had_its_time(connection: Connection, now: float) -> bool:
    """Whether the client of a connection, which is to do something, had long enough for that."""
    patience = _BETWEEN_CALLS if _rests(connection) else _FOR_A_CALL
    return now - (connection.waiting_since or now) > patience
