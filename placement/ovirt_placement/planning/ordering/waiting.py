"""Waits between the moves of a sequence, as they are found: always of a later move for an earlier one."""

from __future__ import annotations

from collections.abc import Sequence


class Waiting:
    """Moves are looked at one after another; those before the one that is looked at get no more waits."""

    def __init__(self, burdens: Sequence[int]) -> None:
        """`burdens` say how long each move takes compared with others."""
        self._burdens = burdens
        self._after: list[set[int]] = [set() for _ in burdens]
        #: Of each move so far, as bits, all that must have ended before it begins.
        self._ended: list[int] = []
        #: When each move so far ends at the soonest, in units of burden.
        self._end: list[int] = []

    def look_at_next(self) -> None:
        at = len(self._ended)
        self._ended.append(0)
        self._end.append(self._burdens[at])
        for before in self._after[at]:
            self._count(at, before)

    def add(self, after: int, before: int) -> None:
        """Of the move that is looked at, or of a later one."""
        self._after[after].add(before)
        if after < len(self._ended):
            self._count(after, before)

    def has_ended(self, before: int, at: int) -> bool:
        """Whether a move has ended for certain when that at `at`, which is looked at, begins."""
        return bool(self._ended[at] >> before & 1)

    def end(self, at: int) -> int:
        """When a move ends at the soonest, for comparing moves that could be waited for."""
        return self._end[at]

    def reduced(self) -> tuple[tuple[int, ...], ...]:
        """Of each move those that it waits for and that none of these waits for."""
        return tuple(tuple(self._reduced(after)) for after in self._after)

    def _reduced(self, after: set[int]) -> list[int]:
        kept: list[int] = []
        ended = 0
        for before in sorted(after, reverse=True):
            if not ended >> before & 1:
                kept.append(before)
                ended |= self._ended[before]
        return kept[::-1]

    def _count(self, at: int, before: int) -> None:
        self._ended[at] |= self._ended[before] | 1 << before
        self._end[at] = max(self._end[at], self._end[before] + self._burdens[at])
