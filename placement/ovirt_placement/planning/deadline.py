"""How long planning may go on: asked for again and again, so that planning itself reads no clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

#: Of the time by the clock that is left after a stage, the part that it may use up on a busy machine.
_LENT = 0.5


@dataclass(frozen=True, slots=True)
class Deadline:
    """`seconds_left` says how much time there still is: 0 or less once it is over or planning is to stop.

    That is the limit, by the clock. Shares of it are counted by `work_left`, where it is given: the same in
    seconds in which the process had a CPU, so that a stage does as much on a busy machine as on an idle one,
    as far as the limit allows it.
    """

    seconds_left: Callable[[], float]
    work_left: Callable[[], float] | None = None

    @classmethod
    def after(
        cls,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.process_time,
    ) -> Self:
        """A number of seconds from now by the clock; work is what of it the process has a CPU for.

        Threads that work side by side count as one.
        """
        began, worked = clock(), cpu()
        return cls(
            lambda: seconds - (clock() - began),
            lambda: seconds - min(clock() - began, cpu() - worked),
        )

    @property
    def over(self) -> bool:
        return self.seconds_left() <= 0.0 or (self.work_left is not None and self.work_left() <= 0.0)

    def within(self, share: float, lent: float = _LENT) -> Deadline:
        """A deadline that ends once this share, 0 to 1, of the time that is left now is used.

        Where work is counted it is the share of that, and `lent` is how much of the rest by the clock it may
        use up, too; 0 where what comes after it must be done.
        """
        left = self.seconds_left()
        if left == math.inf:
            return self  # a share of no limit is none
        rest = left * (1.0 - share)
        if self.work_left is None:
            return Deadline(lambda: self.seconds_left() - rest)
        work_left, unworked = self.work_left, self.work_left() * (1.0 - share)
        return Deadline(lambda: self.seconds_left() - rest * (1.0 - lent), lambda: work_left() - unworked)

    def later(self, seconds: float) -> Deadline:
        """One that ends so much later by the clock, and in which no work is counted."""
        return Deadline(lambda: self.seconds_left() + seconds)


NEVER = Deadline(lambda: math.inf)
NO_TIME = Deadline(lambda: 0.0)
