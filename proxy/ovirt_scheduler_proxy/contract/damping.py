"""Tells the administrator of each failure once in a while, and not with every VM that is started."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..pool.outcome import Cause
from ..units import Kind

#: A failure is told again after so many seconds.
QUIET_SECONDS = 600.0


class Damping:
    """One message per unit, method and cause in ten minutes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[tuple[str, Kind, Cause], float] = {}

    def may_tell(self, unit: str, kind: Kind, cause: Cause) -> bool:
        """Whether the failure is to be told now; if so, it counts as told."""
        now = self._clock()
        key = unit, kind, cause
        if now - self._told.get(key, -QUIET_SECONDS) < QUIET_SECONDS:
            return False
        self._forget(now)
        self._told[key] = now
        return True

    def _forget(self, now: float) -> None:
        """Callers may ask for any name as a unit: what is long past must not pile up."""
        if len(self._told) >= 1000:
            self._told = {key: told for key, told in self._told.items() if now - told < QUIET_SECONDS}
        while len(self._told) >= 10_000:
            del self._told[next(iter(self._told))]
