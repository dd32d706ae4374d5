"""What serves snapshots now; it is closed at the end of the test that made it."""

from __future__ import annotations

from typing import Protocol


class Closable(Protocol):
    """What answers until it is closed."""

    def close(self) -> object:
        """Answer no more."""


SERVED: set[Closable] = set()
