"""What is said once, until it changes or is over; every start of a unit loads this, so no `logging` here."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable

#: There may be any number of subjects: of more than these the oldest are forgotten.
_MOST_SUBJECTS = 10_000


class Said:
    """Remembers what was said of which subject, for all threads."""

    def __init__(self, quiet_seconds: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        """The same is said again after the quiet time; without one, only when it was over."""
        self._quiet_seconds = quiet_seconds
        self._clock = clock
        self._lock = threading.Lock()
        #: The words and the moment for each subject, the oldest first.
        self._said: dict[Hashable, tuple[str, float]] = {}

    def is_news(self, subject: Hashable, words: str = "") -> bool:
        """Whether this is to be said now; if so, it counts as said."""
        now = self._clock()
        with self._lock:
            before, at = self._said.get(subject, (None, -math.inf))
            if words == before and now - at < self._quiet_seconds:
                return False
            self._said.pop(subject, None)
            self._forget(now)
            self._said[subject] = (words, now)
            return True

    def is_over(self, subject: Hashable) -> bool:
        """Whether something was said of it, which holds no more: from now on it is news again."""
        with self._lock:
            return self._said.pop(subject, None) is not None

    def _forget(self, now: float) -> None:
        """Drop what may be said again anyway, and more where that is not enough."""
        while self._said:
            subject, (_, at) = next(iter(self._said.items()))
            if now - at < self._quiet_seconds and len(self._said) < _MOST_SUBJECTS:
                return
            del self._said[subject]


class Few:
    """Lets few lines of a kind be said in a while, and counts the others: their cause may last."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        #: When lines were said, and how many were not since.
        self._said: dict[Hashable, tuple[deque[float], int]] = {}

    def left_out(self, kind: Hashable) -> int | None:
        """How many of this kind were left out before this one; None if this one is as well."""
        said, others = self._said.get(kind) or (deque[float](maxlen=self._most), 0)
        now = self._clock()
        if len(said) == self._most and now - said[0] < self._seconds:
            self._said[kind] = said, others + 1
            return None
        said.append(now)
        self._said[kind] = said, 0
        if len(self._said) > _MOST_SUBJECTS:
            del self._said[next(iter(self._said))]
        return others
