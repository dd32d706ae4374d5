"""When to start workers again that keep failing to start: soon at first, and each time later."""

from __future__ import annotations

import time
from collections.abc import Callable

from ovirt_service.back_off import BackOff

FIRST_SECONDS = 0.1
LONGEST_SECONDS = 10.0

_BACK_OFF = BackOff(FIRST_SECONDS, LONGEST_SECONDS)


class NextTry:
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
        self._failures += 1
        delay = _BACK_OFF.pause_after(self._failures)
        self._not_before = self._clock() + delay
        return delay

    def succeeded(self) -> None:
        self._failures = 0
        self._not_before = 0.0
