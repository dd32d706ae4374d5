"""The engine's events without gaps and doubles, though ids can appear late; pure."""

from __future__ import annotations

from collections.abc import Sequence, Set

from ovirt_placement.engine.reading.events import EngineEvent

#: An event may appear so much later than one with a higher id; what appears later still is left to the
#: reconciliation.
LATEST_SECONDS = 5.0

_Mark = tuple[int, float]


class FeedInterrupted(Exception):
    """Events were missed, or the engine has not the history any more that it had: all must be read again."""


class Feed:
    """Follows the event log from a first page on.

    Each page is asked for from `after` on, which lies a little before the last id, so that it must hold at
    least one event that is known: if it does not, the log was replaced or more happened than a page holds.
    """

    def __init__(self, page: Sequence[EngineEvent], now: float) -> None:
        """Start after this page, oldest event first: what is in it has happened before."""
        self._seen = {event.id: (now, _mark(event)) for event in page}
        self._anchor = 0
        if page:
            # By the engine's clock: what is that much older than the newest has no successors to come.
            old = [event.id for event in page if event.time <= page[-1].time - LATEST_SECONDS]
            self._anchor = max(old, default=0)

    @property
    def after(self) -> int:
        """Ask for events with higher ids than this."""
        return max(0, self._anchor - 1)

    @property
    def known(self) -> Set[int]:
        """Events that a page need not hold, wherever they are asked for: they were given out."""
        return self._seen.keys() - {self._anchor}

    def take(self, page: Sequence[EngineEvent], now: float) -> tuple[EngineEvent, ...]:
        """Return the events of a page that are new, lowest id first.

        Raises `FeedInterrupted` if the page does not follow on what is known.
        """
        if self._anchor:
            known = self._seen[self._anchor][1]
            if not any(event.id == self._anchor and _mark(event) == known for event in page):
                raise FeedInterrupted(
                    "the engine's events do not go on where they ended: its log was replaced, or too"
                    " much happened at once"
                )
        new = tuple(event for event in page if event.id not in self._seen)
        self._seen.update((event.id, (now, _mark(event))) for event in new)
        self._advance(now)
        return new

    def _advance(self, now: float) -> None:
        """Move on to the highest id after which no lower one is to be expected any more."""
        settled = [number for number, (seen, _) in self._seen.items() if seen <= now - LATEST_SECONDS]
        anchor = max(settled, default=0)
        if anchor > self._anchor:
            self._anchor = anchor
            self._seen = {number: seen for number, seen in self._seen.items() if number >= anchor}


def _mark(event: EngineEvent) -> _Mark:
    """What distinguishes events with the same id, in a log that was restored from a backup."""
    return event.code, event.time
