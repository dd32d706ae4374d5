"""Cuts off a unit that keeps overrunning or crashing, so that it does not slow every call down."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from .outcome import Cause

#: This many overruns, or crashes, within `WINDOW_SECONDS` open the breaker.
OVERRUNS = 3
CRASHES = 5
WINDOW_SECONDS = 60.0

#: After so long one call is let through, to try whether the unit is well again.
OPEN_SECONDS = 30.0

_CRASHES = frozenset({Cause.CRASHED, Cause.EXITED, Cause.MEMORY})
#: What takes a call's whole deadline.
_OVERRUNS = frozenset({Cause.OVERRAN, Cause.NOT_STARTED})


class _Breaker:
    """The breaker of one unit: closed, open, or half-open while one call tries."""

    def __init__(self) -> None:
        self.overruns: deque[float] = deque(maxlen=OVERRUNS)
        self.crashes: deque[float] = deque(maxlen=CRASHES)
        self.opened_at: float | None = None
        self.trying = False

    def fail(self, times: deque[float], now: float) -> None:
        times.append(now)
        often = len(times) == times.maxlen and now - times[0] <= WINDOW_SECONDS
        if often or self.trying:
            self.opened_at = now
        self.trying = False


class Breakers:
    """The breakers of all units, distinguished by a key."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._breakers: dict[str, _Breaker] = {}

    def admit(self, key: str, ready: bool = True) -> bool:
        """Whether the unit may be asked. When half-open, the first who asks may and all others may not.

        Where no worker is `ready`, a unit that was cut off stays so: trying would take a whole deadline.
        """
        breaker = self._breakers.get(key)
        if breaker is None or breaker.opened_at is None:
            return True
        if not ready or breaker.trying or self._clock() - breaker.opened_at < OPEN_SECONDS:
            return False
        breaker.trying = True
        return True

    def record(self, key: str, cause: Cause | None) -> None:
        """Note how a call that was admitted ended: with a failure, or well (None)."""
        if cause in _OVERRUNS or cause in _CRASHES:
            breaker = self._breakers.setdefault(key, _Breaker())
            breaker.fail(breaker.overruns if cause in _OVERRUNS else breaker.crashes, self._clock())
        elif key in self._breakers and self._breakers[key].trying:
            if cause is Cause.NO_WORKER:
                self._breakers[key].trying = False  # it was never asked: nothing is known
            else:
                del self._breakers[key]  # it answered, be it with a failure of another kind: it is back

    def open_keys(self) -> list[str]:
        """The units that are cut off, or on trial."""
        return sorted(key for key, breaker in self._breakers.items() if breaker.opened_at is not None)
