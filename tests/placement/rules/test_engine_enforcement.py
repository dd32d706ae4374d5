"""The engine's order of candidates where the vectors do not go, and where ours is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import constraints
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.engine_enforcement import Tier, candidates, cycle, gains, tiers
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    snapshot,
    vm,
)
from tests.examples import examples
from tests.placement.planning.assignment.clusters import drawn
from tests.placement.rules.test_rank_selector import halves, spread

HOSTS = ("h1", "h2", "h3")


def tiers_with(state: Snapshot, best: str | None = None) -> tuple[Tier, ...]:
    return candidates(state, CLUSTER, anywhere(state), lambda vm: best)


def anywhere(state: Snapshot) -> Callable[[str], list[str]]:
    return lambda vm: [one.id for one in state.hosts]


def test_a_pinned_member_does_not_keep_its_negative_partner_there() -> None:
    """The engine leaves both where they are for ever; the one that can move parts them."""
    state = snapshot(
        *map(host, HOSTS), vm("a", "h1", migratable=False), vm("b", "h1"), group("g", APART, "a b")
    )
    assert tiers_with(state) == (("b",),)


def test_members_that_cannot_move_are_gathered_at() -> None:
    state = snapshot(
        *map(host, HOSTS),
        vm("a", "h1", hosted_engine=True),
        vm("b", "h2"),
        vm("c", "h2"),
        group("g", TOGETHER, "a b c"),
    )
    assert tiers_with(state) == (("b", "c"),)


@pytest.mark.parametrize(
    ("vms_weight", "hosts_weight", "moves"), [(1, 20, False), (20, 1, True), (5, 5, False)]
)
def test_the_family_that_weighs_more_decides_a_soft_move(
    vms_weight: int, hosts_weight: int, moves: bool
) -> None:
    """The engine takes any gain, and then moves the VM back for the other family's sake."""
    policy = {"vm_affinity_weight": vms_weight, "vm_to_host_weight": hosts_weight}
    state = snapshot(
        cluster(policy=policy),
        *map(host, HOSTS),
        vm("a", "h1"),
        vm("b", "h2", migratable=False),
        group("together", SOFT_TOGETHER, "a b"),
        group("on h1", vms="a", hosts_rule=SOFT_TOGETHER, hosts="h1"),
    )
    assert bool(tiers_with(state, best="h2")) is moves


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
    assert tiers_with(state, best="h2") == (("a",),)
    assert tiers_with(state, best="h1") == ()


def test_fewest_violated_host_rules_come_first_as_the_engine_has_it() -> None:
    state = snapshot(
        *map(host, HOSTS),
        vm("one", "h1"),
        vm("two", "h1"),
        group("g1", vms="one two", hosts_rule=APART, hosts="h1"),
        group("g2", vms="two", hosts_rule=TOGETHER, hosts="h2"),
    )
    assert tiers_with(state) == (("one",), ("two",))


def test_members_of_a_group_with_higher_priority_come_first_though_it_is_smaller() -> None:
    state = snapshot(
        *map(host, HOSTS),
        *(vm(name, "h1") for name in "abcde"),
        group("large", SOFT_APART, "a b c"),
        group("small", SOFT_APART, "d e", priority=2.0),
    )
    assert tiers_with(state, best="h2") == (("d", "e"), ("a", "b", "c"))


def test_a_cycle_passes_over_clusters_that_are_busy_but_not_over_those_that_are_upgraded() -> None:
    names = ("idle", "busy", "upgraded")
    state = snapshot(
        *(cluster(name, upgrade_mode=name == "upgraded") for name in names),
        *(host(f"{name}{number}", cluster=name) for name in names for number in (1, 2)),
        *(vm(f"{name}-{twin}", f"{name}1", cluster=name) for name in names for twin in "ab"),
        *(group(name, APART, f"{name}-a {name}-b", cluster=name) for name in names),
        vm("migrating", "busy1", cluster="busy", status="migrating", migrating_to="busy2"),
    )
    assert cycle(state, anywhere(state), lambda vm: None) == {
        "idle": ("idle-a", "idle-b"),
        "upgraded": ("upgraded-a", "upgraded-b"),
    }


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 10**9))
def test_each_candidate_is_there_once_and_may_move(seed: int) -> None:
    state = drawn(seed)
    found = [name for tier in tiers_with(state, best="h1") for name in tier]
    assert len(found) == len(set(found))
    assert all(state.vm_by_id[name].movable and state.vm_by_id[name].host for name in found)
    assert tiers_with(state, best="h1") == tiers_with(state, best="h1")


@pytest.mark.parametrize("there", range(3))
@pytest.mark.parametrize("here", range(3))
@pytest.mark.parametrize("as_engine", [True, False])
def test_a_loss_weighs_against_a_gain_of_the_same_priority(there: int, here: int, as_engine: bool) -> None:
    """Of groups with one other member each: it stands where the VM would go, or where it is."""
    friends = [("h2", f"there{at}") for at in range(there)] + [("h1", f"here{at}") for at in range(here)]
    state = snapshot(
        *map(host, HOSTS),
        vm("a", "h1"),
        *(vm(name, place) for place, name in friends),
        *(group(f"with {name}", SOFT_TOGETHER, f"a {name}") for _, name in friends),
    )
    assert gains(state, "a", "h2", as_engine=as_engine) == (there > here)


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
    found = [sorted(tier) for hard, tier in tiers(rules, placement, able, as_engine=True) if hard and tier]
    assert found == [sorted(tier) for tier in expected(state)]
