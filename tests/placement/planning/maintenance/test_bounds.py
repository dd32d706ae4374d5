"""What no plan can beat is no more than the best there is: found by trying all."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ovirt_placement.planning.maintenance import exact as bounds
from ovirt_placement.planning.maintenance.planner import plan_maintenance
from tests.builders import host, snapshot, vm


def fewest_packs(sizes: Sequence[int], room: int) -> int:
    """By trying each pack for each thing; each must fit by itself."""

    def best(left: Sequence[int], packs: tuple[int, ...], least: int) -> int:
        if not left or len(packs) >= least:
            return min(least, len(packs)) if not left else least
        first, *others = left
        for at, filled in enumerate(packs):
            if filled + first <= room:
                least = best(others, (*packs[:at], filled + first, *packs[at + 1 :]), least)
        return best(others, (*packs, first), least)

    return best(sizes, (), len(sizes) + 1)


@given(st.lists(st.integers(1, 10), min_size=1, max_size=7))
@example([5, 5])
@example([5, 5, 5, 5])
@example([6, 4, 5, 5])
def test_no_fewer_packs_are_possible_than_are_called_needed(sizes: list[int]) -> None:
    for room in (max(sizes), 10, 12):
        found = bounds.packs_at_least(sizes, room)
        assert -(-sum(sizes) // room) <= found <= fewest_packs(sizes, room)
    assert bounds.packs_at_least(sizes, max(sizes) - 1) == 0


@pytest.mark.parametrize("asked", range(6))
@pytest.mark.parametrize("needed", range(7))
def test_a_round_that_is_begun_is_a_round(asked: int, needed: int) -> None:
    """Of six hosts some must be up at any time: the others go, as many at once as that leaves."""
    names = frozenset(f"h{number}" for number in range(6))
    site: Any = SimpleNamespace(asked=sorted(names)[:asked])
    rounds, left = 0, asked
    while left > 0 and needed < len(names):
        rounds, left = rounds + 1, left - (len(names) - needed)
    assert bounds._by_places(site, names, needed) == rounds


def test_one_that_steps_aside_twice_spares_three_a_second_move() -> None:
    """Big leaves h3 to those of h1, and h2 again with those of h2: eight migrations, and not nine."""
    state = snapshot(
        host("h1", free_mb=3072), host("h2", free_mb=3072), host("h3", free_mb=0),
        *(vm(f"{name}{number}", name, needs_mb=1024) for name in ("h1", "h2") for number in range(3)),
        vm("big", "h3", needs_mb=3072),
    )  # fmt: skip
    plan = plan_maintenance(state, ("h1", "h2"))
    assert (plan.migrations, plan.migrations_at_least, plan.proven) == (8, 8, True)
