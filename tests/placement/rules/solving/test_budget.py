"""A budget ends when its steps are spent, and one search among many gets no more than its share."""

from __future__ import annotations

import pytest

from ovirt_placement.rules.assignment import Budget, BudgetSpentError


def left_of(budget: Budget) -> int:
    """How many steps it still gives."""
    steps = 0
    while True:
        try:
            budget.spend()
        except BudgetSpentError:
            return steps
        steps += 1


def test_all_steps_can_be_taken_and_no_more() -> None:
    assert left_of(Budget(3)) == 3


def test_what_a_share_leaves_comes_back() -> None:
    budget = Budget(10)
    with budget.share(4) as share:
        share.spend(3)
    assert left_of(budget) == 7


def test_ended_share_leaves_the_rest_to_others() -> None:
    budget = Budget(10)
    with pytest.raises(BudgetSpentError), budget.share(4) as share:
        share.spend(5)
    assert left_of(budget) == 6


def test_share_is_never_more_than_what_is_left() -> None:
    budget = Budget(3)
    with budget.share(100) as share:
        assert left_of(share) == 3
    assert left_of(budget) == 0
