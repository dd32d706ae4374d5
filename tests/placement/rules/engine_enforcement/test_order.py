"""The engine's order of candidates where the vectors do not go, and where ours is better."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.engine_enforcement import Tier, candidates, cycle, gains
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

HOSTS = ("h1", "h2", "h3")


def tiers(state: Snapshot, best: str | None = None) -> tuple[Tier, ...]:
    return candidates(state, CLUSTER, anywhere(state), lambda vm: best)


def anywhere(state: Snapshot) -> Callable[[str], list[str]]:
    return lambda vm: [one.id for one in state.hosts]


def test_a_pinned_member_does_not_keep_its_negative_partner_there() -> None:
    """The engine leaves both where they are for ever; the one that can move parts them."""
    state = snapshot(
        *map(host, HOSTS), vm("a", "h1", migratable=False), vm("b", "h1"), group("g", APART, "a b")
    )
    assert tiers(state) == (("b",),)


def test_members_that_cannot_move_are_gathered_at() -> None:
    state = snapshot(
        *map(host, HOSTS),
        vm("a", "h1", hosted_engine=True),
        vm("b", "h2"),
        vm("c", "h2"),
        group("g", TOGETHER, "a b c"),
    )
    assert tiers(state) == (("b", "c"),)


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
    assert bool(tiers(state, best="h2")) is moves


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
    assert tiers(state, best="h2") == (("a",),)
    assert tiers(state, best="h1") == ()


def test_fewest_violated_host_rules_come_first_as_the_engine_has_it() -> None:
    state = snapshot(
        *map(host, HOSTS),
        vm("one", "h1"),
        vm("two", "h1"),
        group("g1", vms="one two", hosts_rule=APART, hosts="h1"),
        group("g2", vms="two", hosts_rule=TOGETHER, hosts="h2"),
    )
    assert tiers(state) == (("one",), ("two",))


def test_members_of_a_group_with_higher_priority_come_first_though_it_is_smaller() -> None:
    state = snapshot(
        *map(host, HOSTS),
        *(vm(name, "h1") for name in "abcde"),
        group("large", SOFT_APART, "a b c"),
        group("small", SOFT_APART, "d e", priority=2.0),
    )
    assert tiers(state, best="h2") == (("d", "e"), ("a", "b", "c"))


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
    found = [name for tier in tiers(state, best="h1") for name in tier]
    assert len(found) == len(set(found))
    assert all(state.vm_by_id[name].movable and state.vm_by_id[name].host for name in found)
    assert tiers(state, best="h1") == tiers(state, best="h1")


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
