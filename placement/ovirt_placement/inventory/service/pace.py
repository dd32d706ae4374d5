"""How often the engine is asked what has changed: seldom, while nobody makes decisions."""

from __future__ import annotations

#: Decisions come in bursts: so long after one that asked for something newer, more are expected.
BURST_SECONDS = 10.0


#: A turn takes some of the time, too.
_SHARE = 0.8


class ReconciliationPace:
    """Pure, given when decisions are made; who asks for something newer is answered at once."""

    def __init__(self, interval: float, max_age: float) -> None:
        """`interval` is the time between two questions to the engine at rest.

        In a burst it is asked so often that a decision, which goes by nothing older than `max_age`, need not
        wait for it.
        """
        self._interval = interval
        self._burst_interval = min(interval, _SHARE * max_age)
        self._asked_at = float("-inf")

    def asked(self, now: float) -> None:
        """Take note of a decision, or of a reader that asks for a newer snapshot; from any thread."""
        self._asked_at = now

    def interval(self, now: float) -> float:
        """Say how long after the last question to the engine the next one is due."""
        return self._burst_interval if now < self._asked_at + BURST_SECONDS else self._interval
