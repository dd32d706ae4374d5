"""How soon a cluster may be read again, however much happens there."""

from __future__ import annotations

import math
from collections.abc import Callable

#: Two readings of a cluster are this many seconds apart, and this many times what one takes.
_LEAST_PAUSE_SECONDS = 1.0
_LEAST_PAUSE_LOOKS = 5.0


class Pace:
    """When the engine was read last, and for how long."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._looked_at = -math.inf
        #: What the last look took.
        self.look_seconds = 0.0

    def looked(self, began: float) -> None:
        """A look that began then has ended now."""
        self._looked_at, self.look_seconds = self._clock(), self._clock() - began

    @property
    def earliest(self) -> float:
        """When the next look may be at the earliest, in seconds of the clock."""
        pause = max(_LEAST_PAUSE_SECONDS, _LEAST_PAUSE_LOOKS * self.look_seconds)
        return max(self._clock(), self._looked_at + pause)
