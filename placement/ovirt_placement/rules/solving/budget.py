"""Bounds work by counting steps, not time: the same question always gets the same answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class BudgetSpentError(Exception):
    """The work allowed is done and the question still open."""


class Budget:
    """Steps that a search may still take; shared by all searches that answer one question."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    @property
    def left(self) -> int:
        """Steps that are left; below 0 where more was asked for than there was."""
        return self._left

    def spend(self, steps: int = 1) -> None:
        """Raises `BudgetSpentError` when nothing is left."""
        self._left -= steps
        if self._left < 0:
            raise BudgetSpentError

    @contextmanager
    def share(self, steps: int) -> Iterator[Budget]:
        """At most this many steps for one search among many; what it leaves comes back."""
        share = Budget(min(steps, self._left))
        self._left -= share._left
        try:
            yield share
        finally:
            self._left += max(0, share._left)
