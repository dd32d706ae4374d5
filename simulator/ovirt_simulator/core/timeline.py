"""What is due when: the simulated clock and the actions that wait for it."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count

Action = Callable[[], None]


class Timeline:
    """A clock that moves only when moved, and a queue of actions in the order they fall due."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = count()
        self._queue: list[tuple[float, int, Action]] = []

    @property
    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._elapsed

    def after(self, seconds: float, action: Action) -> None:
        """Let the action fall due this many seconds from now, after all that is due at the same time."""
        heapq.heappush(self._queue, (self._elapsed + seconds, next(self._order), action))

    def next_due(self, until: float) -> Action | None:
        """Move to the next action that is due until then and take it; None moves all the way."""
        if self._queue and self._queue[0][0] <= until:
            due, _, action = heapq.heappop(self._queue)
            self._elapsed = max(self._elapsed, due)
            return action
        self._elapsed = max(self._elapsed, until)
        return None
