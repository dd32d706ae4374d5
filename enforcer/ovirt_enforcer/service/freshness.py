"""Says for how long a reading of the engine may be acted upon: what is too old describes another cluster."""

from __future__ import annotations

from typing import Final

#: For so long after a reading.
_SECONDS: Final = 3.0
#: A reading that takes this many times as long as the one before, and so much longer, may have been
#: interrupted: its first part is old. Another one that takes as long shows that the engine is slow.
_SLOWER: Final = 2.0
_SLOWER_SECONDS: Final = 5.0


class Freshness:
    """Judges readings, one after another, by how long they took."""

    def __init__(self) -> None:
        self._before = 0.0

    def until(self, began: float, ended: float) -> float:
        """Until when steps may be begun on a reading; moments are those of a clock that only grows."""
        before, self._before = self._before, ended - began
        usual = self._before <= _SLOWER * before + _SLOWER_SECONDS
        return (ended if usual else began) + _SECONDS
