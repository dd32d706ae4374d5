"""How many notices of a channel may be sent: a number at once, and a number an hour from then on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_HOUR_SECONDS: Final = 3600.0


class RateLimit:
    """A stock that each notice takes one of, and that fills up with the time; for one thread."""

    def __init__(self, most_per_hour: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most_per_hour
        self._clock = clock
        self._stock = float(most_per_hour)
        self._filled_at = clock()

    def take(self) -> bool:
        """Take one, if there is any."""
        now = self._clock()
        filled = (now - self._filled_at) * self._most / _HOUR_SECONDS
        self._stock, self._filled_at = min(float(self._most), self._stock + filled), now
        if self._stock < 1.0:
            return False
        self._stock -= 1.0
        return True

    def seconds_until_next(self) -> float:
        """When there will be one again, as of the last `take`."""
        return max(0.0, 1.0 - self._stock) * _HOUR_SECONDS / self._most
