"""How often the engine is asked what has changed: seldom, while nobody makes decisions."""

from __future__ import annotations

#: Decisions come in bursts: so long after one that asked for something newer, more are expected.
BURST_SECONDS = 10.0
#: In a burst the engine is asked this many times as often.
BURST_FACTOR = 8.0


class ReconciliationPace:
    """Pure, given when readers ask for a newer snapshot; whatever the pace, those are answered at once."""

    def __init__(self, interval: float) -> None:
        """`interval` is the time between two questions to the engine at rest."""
        self._interval = interval
        self._asked_at = float("-inf")

    def asked(self, now: float) -> None:
        """Take note of a reader that asks for a newer snapshot."""
        self._asked_at = now

    def interval(self, now: float) -> float:
        """Say how long after the last question to the engine the next one is due."""
        return self._interval / (BURST_FACTOR if now < self._asked_at + BURST_SECONDS else 1.0)
