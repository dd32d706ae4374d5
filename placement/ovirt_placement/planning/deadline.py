"""How long planning may go on: asked for again and again, so that planning itself reads no clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """`seconds_left` says how much time there still is: 0 or less once it is over or planning is to stop."""

    seconds_left: Callable[[], float]

    @property
    def over(self) -> bool:
        return self.seconds_left() <= 0.0

    def within(self, share: float) -> Deadline:
        """A deadline that ends once this share, 0 to 1, of the time that is left now is used."""
        until = self.seconds_left() * (1.0 - share)
        return Deadline(lambda: self.seconds_left() - until)


NEVER = Deadline(lambda: math.inf)
