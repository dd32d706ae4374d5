"""The engine's order of candidates where the vectors do not go.

That of hard groups is compared with the simulator's: tests/tools/test_copies.py.
"""

from __future__ import annotations

import pytest

from ovirt_placement.rules.catalogue import constraints
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.scheduling import gains, tiers
from tests.builders import (
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    group,
    host,
    snapshot,
    vm,
)

HOSTS = ("h1", "h2", "h3")


def test_gains_and_losses_that_cancel_leave_it_to_the_next_priority() -> None:
    state = snapshot(
        *map(host, HOSTS),
        vm("a", "h1"),
        vm("b", "h1", migratable=False),
        vm("c", "h2", migratable=False),
        vm("d", "h1", migratable=False),
        group("from b", SOFT_APART, "a b", priority=5.0),
        group("from c", SOFT_APART, "a c", priority=5.0),
        group("from d", SOFT_APART, "a d", priority=1.0),
    )
    assert gains(state, "a", "h2")
    assert not gains(state, "a", "h1")


def test_members_of_a_group_with_higher_priority_come_first_though_it_is_smaller() -> None:
    state = snapshot(
        *map(host, HOSTS),
        *(vm(name, "h1") for name in "abcde"),
        group("large", SOFT_APART, "a b c"),
        group("small", SOFT_APART, "d e", priority=2.0),
    )
    found = tiers([*constraints(state, CLUSTER)], SnapshotPlacement(state), "abcde")
    assert list(found) == [(False, ("d", "e")), (False, ("a", "b", "c"))]


@pytest.mark.parametrize("there", range(3))
@pytest.mark.parametrize("here", range(3))
def test_a_loss_weighs_against_a_gain_of_the_same_priority(there: int, here: int) -> None:
    """Of groups with one other member each: it stands where the VM would go, or where it is."""
    friends = [("h2", f"there{at}") for at in range(there)] + [("h1", f"here{at}") for at in range(here)]
    state = snapshot(
        *map(host, HOSTS),
        vm("a", "h1"),
        *(vm(name, place) for place, name in friends),
        *(group(f"with {name}", SOFT_TOGETHER, f"a {name}") for _, name in friends),
    )
    assert gains(state, "a", "h2") == (there > here)
