"""How many connections there may be, and who has to go for another: pure bookkeeping."""

from __future__ import annotations

import time

from .connection import Connection

#: Seconds that a client has for its first call, and between two calls, before others may take its place.
_BEFORE_A_CALL = 1.0
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
        """Whether one more may come, beside those about to; an idle connection is closed for it."""
        if len(self) + entering < self._most:
            return True
        return _close_one(self._strangers or self._callers)

    def add(self, connection: Connection, may_call: bool) -> None:
        if not may_call and len(self._strangers) >= self._strangers_most:
            _close_one(self._strangers, even_busy=True)
        (self._callers if may_call else self._strangers).add(connection)

    def remove(self, connection: Connection) -> None:
        self._callers.discard(connection)
        self._strangers.discard(connection)


def _close_one(connections: set[Connection], even_busy: bool = False) -> bool:
    """Close the connection that is idle the longest, of those without a call before. False if none is."""
    now = time.monotonic()
    idle = [each for each in connections if even_busy or _is_idle(each, now)]
    if not idle:
        return False
    victim = min(idle, key=lambda each: (each.has_called, each.waiting_since or now))
    connections.discard(victim)
    victim.abort()
    return True


def _is_idle(connection: Connection, now: float) -> bool:
    since = connection.waiting_since
    if since is None or not connection.idle:
        return False
    return now - since > (_BETWEEN_CALLS if connection.has_called else _BEFORE_A_CALL)
