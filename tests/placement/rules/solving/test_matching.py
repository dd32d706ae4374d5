"""Matching: the answer is that of trying everything, and the work stays small however large the group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.rules.assignment import can_all_differ, most_served

CHOICES = st.lists(st.frozensets(st.sampled_from("abcde")), max_size=6)
THOUSAND = 1000


def all_differ(choices: Sequence[frozenset[str]]) -> bool:
    return any(len(set(chosen)) == len(chosen) for chosen in product(*choices))


@given(CHOICES)
def test_all_can_differ_exactly_if_some_way_to_choose_shows_it(choices: list[frozenset[str]]) -> None:
    assert can_all_differ(choices) == all_differ(choices)


@given(CHOICES)
def test_most_served_is_the_size_of_the_largest_set_that_can_differ(choices: list[frozenset[str]]) -> None:
    largest = max(
        size
        for size in range(len(choices) + 1)
        if any(all_differ(chosen) for chosen in combinations(choices, size))
    )
    assert most_served(choices) == largest


class CountedPlace(str):
    """A place that counts how often places are looked up."""

    __slots__ = ()
    lookups = 0

    def __hash__(self) -> int:
        CountedPlace.lookups += 1
        return int(self)


PLACES = [CountedPlace(number) for number in range(THOUSAND + 1)]


def everywhere() -> list[frozenset[str]]:
    return [frozenset(PLACES[:THOUSAND])] * THOUSAND


def half_of_them() -> list[frozenset[str]]:
    return [frozenset(PLACES[: THOUSAND // 2])] * THOUSAND


def more_and_more() -> list[frozenset[str]]:
    return [frozenset(PLACES[: number + 1]) for number in range(THOUSAND)]


def one_chain() -> list[AbstractSet[str]]:
    """Each takes the first of two places, and the last gets one only if all others take their second."""
    starts = [*range(THOUSAND), 0]
    return [dict.fromkeys(PLACES[start : start + 2]).keys() for start in starts]


@pytest.mark.parametrize(
    ("draw", "served"),
    [
        (everywhere, THOUSAND),
        (half_of_them, THOUSAND // 2),
        (more_and_more, THOUSAND),
        (one_chain, THOUSAND + 1),
    ],
)
def test_a_thousand_look_at_each_choice_a_few_times_at_most(
    draw: Callable[[], Sequence[AbstractSet[str]]], served: int
) -> None:
    choices = draw()
    CountedPlace.lookups = 0
    assert most_served(choices) == served
    assert CountedPlace.lookups <= 4 * sum(map(len, choices))
