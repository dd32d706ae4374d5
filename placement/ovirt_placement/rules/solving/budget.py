"""Bounds work by counting steps, not time: the same question always gets the same answer."""

from __future__ import annotations


class BudgetSpentError(Exception):
    """The work allowed is done and the question still open."""


class Budget:
    """Steps that a search may still take; shared by all searches that answer one question."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Raises `BudgetSpentError` when nothing is left."""
        self.left -= steps
        if self.left < 0:
            raise BudgetSpentError
