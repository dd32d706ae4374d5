"""Collects garbage when nobody waits for the service.

Python would do so whenever much was read, about every other second while the engine is busy. All threads
stand still meanwhile, for up to 0.1 s with ten thousand VMs, and with them all that wait for a decision.
"""

from __future__ import annotations

import gc

#: Little garbage comes together: nearly everything is freed when it is no longer used, without a collection.
_INTERVAL_SECONDS = 30.0


class Garbage:
    """From now on Python collects nothing by itself."""

    def __init__(self) -> None:
        gc.disable()
        self._collected_at = float("-inf")

    def collect(self, now: float) -> None:
        """Collect it if that is due."""
        if now >= self._collected_at + _INTERVAL_SECONDS:
            self._collected_at = now
            gc.collect()
