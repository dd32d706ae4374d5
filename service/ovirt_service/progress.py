"""Distinguishes a loop that gets on from one that hangs."""

from __future__ import annotations

import time
from collections.abc import Callable


class Progress:
    """When a loop last got on; it marks that itself, and the watchdog asks from another thread or task."""

    def __init__(self, longest_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Without a mark for longer than this, the loop hangs."""
        self._longest_seconds = longest_seconds
        self._clock = clock
        self._marked = clock()

    def mark(self) -> None:
        self._marked = self._clock()

    @property
    def hangs(self) -> bool:
        return self._clock() - self._marked > self._longest_seconds
