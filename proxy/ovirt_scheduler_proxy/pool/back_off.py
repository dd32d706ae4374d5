"""When to try again what keeps failing: soon at first, and each time later."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_SECONDS = 0.1
LONGEST_SECONDS = 10.0


class BackOff:
    """Counts failures in a row. What fails while the next try is still to come counts once with the last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._not_before = 0.0

    @property
    def remaining(self) -> float:
        """Seconds until the next try; 0 when it may be made now."""
        return max(0.0, self._not_before - self._clock())

    def failed(self) -> float | None:
        """Returns the seconds until the next try, or None where that is settled already."""
        if self.remaining:
            return None
        delay = min(FIRST_SECONDS * 2.0**self._failures, LONGEST_SECONDS)
        self._failures += 1
        self._not_before = self._clock() + delay
        return delay

    def succeeded(self) -> None:
        self._failures = 0
        self._not_before = 0.0
