"""The engine's order of candidates where the vectors do not go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import constraints
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.engine_enforcement import gains, tiers
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    group,
    host,
    snapshot,
    vm,
)
from tests.examples import examples
from tests.placement.rules.test_rank_selector import halves, spread

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


#: A table with so few keys has this many bins.
BINS = 16


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Ids of which no two are in one bin: how those are ordered is reported the table itself."""
    ids = st.lists(st.uuids().map(str), min_size=9, max_size=9, unique_by=lambda name: spread(name) % BINS)
    names = draw(ids)
    hosts, vms = names[:3], names[3:]
    members = st.lists(st.sampled_from(vms), min_size=2, max_size=5, unique=True).map(" ".join)
    listed = st.lists(st.sampled_from(hosts), min_size=1, max_size=2, unique=True).map(" ".join)
    return snapshot(
        *map(host, hosts),
        *(
            vm(name, draw(st.none() | st.sampled_from(hosts)), migratable=draw(st.integers(0, 5)) > 0)
            for name in vms
        ),
        *(group(f"apart{number}", APART, draw(members)) for number in range(draw(st.integers(0, 2)))),
        *(
            group(
                f"near{number}",
                vms=draw(members),
                hosts_rule=draw(st.sampled_from([TOGETHER, APART])),
                hosts=draw(listed),
            )
            for number in range(draw(st.integers(0, 2)))
        ),
        *([group("together", TOGETHER, draw(members))] if draw(st.booleans()) else []),
    )


def by_table(names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: spread(name) % BINS)


def expected(state: Snapshot) -> Iterator[list[str]]:
    """VMs on wrong hosts one by one, those with the fewest violated rules first; then crowds."""
    wrong = Counter(
        name
        for one in state.affinity_groups
        if one.hosts_rule.hard
        for name in one.vms
        if (place := state.vm_by_id[name].host) and (place in one.hosts) is not one.hosts_rule.positive
    )
    for count in sorted({*wrong.values()}):
        yield from ([name] for name in by_table([*wrong]) if wrong[name] == count)
    violated = [
        one for one in state.affinity_groups if one.vms_rule.hard and is_violated(state, one.vms, one.id)
    ]
    violated.sort(key=lambda one: min(map(halves, one.vms)), reverse=True)
    for one in sorted(violated, key=lambda one: -len(one.vms)):
        crowds: dict[str, list[str]] = {}
        for name in one.vms:
            place = state.vm_by_id[name].host
            if place is not None:
                crowds.setdefault(place, []).append(name)
        left = [
            place
            for place in by_table([*crowds])
            if all(state.vm_by_id[name].movable for name in crowds[place])
        ]
        if one.vms_rule.positive:
            left.sort(key=lambda place: len(crowds[place]))
        else:
            left = [place for place in left if len(crowds[place]) > 1]
            left.sort(key=lambda place: -len(crowds[place]))
        yield from (crowds[place] for place in left)


def is_violated(state: Snapshot, vms: Sequence[str], name: str) -> bool:
    places = [place for vm in vms if (place := state.vm_by_id[vm].host)]
    return len({*places}) > 1 if name == "together" else len({*places}) < len(places)


@settings(max_examples=examples(60))
@given(clusters())
def test_only_the_order_within_a_crowd_is_by_lot(state: Snapshot) -> None:
    # Which of two groups comes first that have as many VMs and the same smallest one nobody says.
    sizes = [(len(one.vms), min(map(halves, one.vms))) for one in state.affinity_groups]
    assume(len({*sizes}) == len(sizes))
    placement = SnapshotPlacement(state)
    rules = [one for one in constraints(state, CLUSTER) if not one.keeps(placement)]
    able = {one.id for one in state.vms if one.movable}
    found = [sorted(tier) for hard, tier in tiers(rules, placement, able) if hard and tier]
    assert found == [sorted(tier) for tier in expected(state)]
