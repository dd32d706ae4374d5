"""Cuts off a unit that keeps overrunning or crashing, so that it does not slow every call down."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from .outcome import Cause

#: So many overruns, or crashes, within `WINDOW_SECONDS` open the breaker.
OVERRUNS = 3
CRASHES = 5
WINDOW_SECONDS = 60.0

#: After so long one call is let through to try whether the unit is well again.
OPEN_SECONDS = 30.0

_LIMITS = {Cause.OVERRAN: OVERRUNS, Cause.CRASHED: CRASHES, Cause.EXITED: CRASHES, Cause.MEMORY: CRASHES}


@dataclass
class _State:
    failures: dict[int, deque[float]] = field(default_factory=dict)
    opened_at: float | None = None
    trying: bool = False


class Breakers:
    """The breakers of all units, told apart by a key. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._states: dict[str, _State] = {}

    def admit(self, key: str) -> bool:
        """Whether the unit may be asked. When half-open, the first who asks may and all others may not."""
        state = self._states.get(key)
        if state is None or state.opened_at is None:
            return True
        with self._lock:
            if state.opened_at is None:
                return True
            if state.trying or self._clock() - state.opened_at < OPEN_SECONDS:
                return False
            state.trying = True
            return True

    def record(self, key: str, cause: Cause | None) -> bool:
        """Note how a call that was admitted ended. Returns whether this opened the breaker."""
        state = self._states.get(key)
        limit = _LIMITS.get(cause) if cause is not None else None
        if limit is None and (state is None or not state.trying):
            return False
        with self._lock:
            state = self._states.setdefault(key, _State())
            if limit is None:
                if cause is not Cause.NO_WORKER:
                    self._states[key] = _State()  # it answered, be it with a failure: it is back
                state.trying = False
                return False
            return self._record_failure(state, limit)

    def open_keys(self) -> list[str]:
        with self._lock:
            return sorted(key for key, state in self._states.items() if state.opened_at is not None)

    def _record_failure(self, state: _State, limit: int) -> bool:
        now = self._clock()
        times = state.failures.setdefault(limit, deque(maxlen=limit))
        times.append(now)
        tripped = len(times) == limit and now - times[0] <= WINDOW_SECONDS
        was_open, was_trying = state.opened_at is not None, state.trying
        state.trying = False
        if tripped or was_trying:
            state.opened_at = now
        return state.opened_at is not None and not was_open
