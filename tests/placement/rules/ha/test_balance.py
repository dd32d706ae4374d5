"""The balance of HA reservation: it moves only what makes the cluster more even."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.ha import Measure, balance_ha_vms
from ovirt_placement.rules.verdict import BalanceMove
from tests.builders import APART, CLUSTER, cluster, group, host, needed_mb, snapshot, vm
from tests.placement.rules.ha.test_weight import sized
from tests.placement.rules.strategies import HOSTS

RESERVING = cluster(ha_reservation=True)
THREE_HOSTS = (host("h1"), host("h2"), host("h3"))


def of(
    state: Snapshot, over: int = 100, hosts: str = "h1 h2 h3", measure: Measure = Measure.RESOURCES
) -> BalanceMove | None:
    return balance_ha_vms(state, CLUSTER, tuple(hosts.split()), over, measure)


def test_what_vms_use_counts_and_not_how_many_they_are() -> None:
    large = (vm(f"large{number}", "h1", ha=True, memory_mb=20_000) for number in range(2))
    small = (vm(f"small{number}", "h2", ha=True, memory_mb=500) for number in range(5))
    state = snapshot(RESERVING, host("h1"), host("h2"), *large, *small)
    assert of(state, hosts="h1 h2") == BalanceMove("large0", ("h2",))
    assert of(state, hosts="h1 h2", measure=Measure.VMS) == BalanceMove("small0", ("h1",))


def test_the_largest_vm_goes_whose_move_makes_the_cluster_more_even() -> None:
    vms = vm("all", "h1", ha=True, memory_mb=40_000), vm("some", "h1", ha=True, memory_mb=9000)
    alongside = vm("other", "h2", ha=True, memory_mb=10_000)
    state = snapshot(RESERVING, host("h1"), host("h2"), *vms, alongside)
    assert of(state, hosts="h1 h2") == BalanceMove("some", ("h2",))


def test_a_host_twice_as_large_bears_twice_as_much() -> None:
    hosts = host("h1", memory_mb=131_072, cores=32), host("h2")
    vms = [vm(f"v{number}", "h1", ha=True) for number in range(4)]
    even = snapshot(RESERVING, *hosts, *vms, *(vm(f"w{number}", "h2", ha=True) for number in range(2)))
    assert of(even, hosts="h1 h2") is None
    assert of(even, hosts="h1 h2", measure=Measure.VMS) == BalanceMove("v0", ("h2",))
    uneven = snapshot(RESERVING, *hosts, *vms, vm("v4", "h1", ha=True), vm("w", "h2", ha=True))
    assert of(uneven, hosts="h1 h2") == BalanceMove("v0", ("h2",))


def test_fullest_host_gives_to_hosts_below_the_share_the_emptiest_first() -> None:
    at_h1 = (vm(f"v{number}", "h1", ha=True) for number in range(4))
    state = snapshot(RESERVING, *THREE_HOSTS, *at_h1, vm("w", "h2", ha=True))
    assert of(state) == BalanceMove("v0", ("h3", "h2"))


def test_even_cluster_is_left_alone() -> None:
    state = snapshot(RESERVING, *THREE_HOSTS, *(vm(f"v{one}", f"h{one}", ha=True) for one in (1, 2, 3)))
    assert of(state) is None


def test_move_that_would_only_swap_the_roles_of_two_hosts_is_not_made() -> None:
    state = snapshot(RESERVING, *THREE_HOSTS, *(vm(f"v{one}", f"h{one}", ha=True) for one in (1, 2)))
    assert of(state) is None


def test_host_with_only_fixed_vms_is_passed_over() -> None:
    fixed = (vm(f"p{number}", "h1", ha=True, migratable=False) for number in range(4))
    movable = (vm(f"q{number}", "h2", ha=True) for number in range(3))
    assert of(snapshot(RESERVING, *THREE_HOSTS, *fixed, *movable)) == BalanceMove("q0", ("h3",))


def test_hosted_engine_and_migrating_vms_stay() -> None:
    state = snapshot(
        RESERVING,
        *THREE_HOSTS,
        vm("engine", "h1", ha=True, hosted_engine=True),
        vm("moving", "h1", ha=True, status="migrating"),
        vm("v", "h1", ha=True),
    )
    assert of(state) == BalanceMove("v", ("h2", "h3"))


def test_target_that_a_hard_rule_refuses_is_left_out() -> None:
    state = snapshot(
        RESERVING,
        *THREE_HOSTS,
        vm("a", "h1", ha=True),
        vm("b", "h1", ha=True),
        vm("foe", "h2"),
        group("g", APART, "a foe"),
    )
    assert of(state) == BalanceMove("a", ("h3",))


def test_failover_host_is_no_target() -> None:
    state = snapshot(
        RESERVING,
        host("h1"),
        host("h2"),
        host("h3", failover=True),
        vm("a", "h1", ha=True),
        vm("b", "h1", ha=True),
    )
    assert of(state) == BalanceMove("a", ("h2",))


@given(sized(), st.sampled_from([1, 50, 100, 150, 200, 300]), st.sampled_from(Measure))
def test_every_move_leaves_the_cluster_more_even(state: Snapshot, over: int, measure: Measure) -> None:
    move = balance_ha_vms(state, CLUSTER, HOSTS, over, measure)
    if move is None:
        return
    moved = next(one for one in state.vms if one.id == move.vm)
    assert state.clusters[0].ha_reservation
    assert moved.ha
    assert moved.migratable
    assert not moved.hosted_engine
    assert moved.host not in move.hosts
    hosts = {one.id: one for one in state.hosts}

    def takes(one: Vm, place: str) -> Fraction:
        if measure is Measure.VMS:
            return Fraction(1)
        return Fraction(needed_mb(one), 2 * hosts[place].memory_mb) + Fraction(
            one.vcpus, 2 * hosts[place].cores
        )

    used = dict.fromkeys(HOSTS, Fraction(0))
    for one in state.vms:
        targets = {entry.host for entry in state.pending if entry.vm == one.id} or {one.host}
        for place in targets & set(HOSTS):
            used[place] += takes(one, place) if one.ha and one.cluster == CLUSTER else 0
    for target in move.hosts:
        before = used[moved.host]
        assert max(before - takes(moved, moved.host), used[target] + takes(moved, target)) < before


@pytest.mark.parametrize(("over", "is_moved"), [(151, True), (200, True), (201, False), (250, False)])
def test_a_host_at_the_threshold_holds_too_many(over: int, is_moved: bool) -> None:
    """Four of the even share of two are 200 percent of it; thresholds are whole VMs."""
    vms = [vm(f"v{number}", "h1", ha=True) for number in range(4)]
    state = snapshot(RESERVING, host("h1"), host("h2"), *vms)
    found = of(state, over, "h1 h2", Measure.VMS)
    assert (found is not None) == is_moved
