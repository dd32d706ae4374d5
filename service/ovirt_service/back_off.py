"""How long to wait before the next try of what keeps failing: little at first, then each time twice as long.

A call that is only to be made again until it succeeds is a library's work. Here are daemons whose loops have
other work, and other reasons to wait, between two tries: they count their failures and ask for the pause.
"""

from __future__ import annotations

from dataclasses import dataclass

#: This many doublings reach any longest pause; many more than a thousand would be too much for a float.
_MOST_DOUBLINGS = 60


@dataclass(frozen=True, slots=True)
class BackOff:
    """The pauses after failures in a row."""

    first_seconds: float
    longest_seconds: float

    def pause_after(self, failures: int) -> float:
        """Seconds to wait after this many failures in a row; none after none."""
        if failures < 1:
            return 0.0
        doublings = min(failures - 1, _MOST_DOUBLINGS)
        return min(self.first_seconds * 2.0**doublings, self.longest_seconds)
