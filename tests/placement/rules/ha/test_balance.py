"""The balance of HA reservation: it moves only what makes the cluster more even."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.ha.balance import balance
from ovirt_placement.rules.verdict import BalanceMove
from tests.builders import APART, CLUSTER, cluster, group, host, snapshot, vm
from tests.placement.rules.strategies import HOSTS, snapshots

RESERVING = cluster(ha_reservation=True)
THREE_HOSTS = (host("h1"), host("h2"), host("h3"))


def of(state: Snapshot, over: int = 100, hosts: str = "h1 h2 h3") -> BalanceMove | None:
    return balance(state, CLUSTER, tuple(hosts.split()), over)


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


@given(snapshots(), st.sampled_from([1, 50, 100, 150, 200, 300]))
def test_every_move_leaves_the_cluster_more_even(state: Snapshot, over: int) -> None:
    move = balance(state, CLUSTER, HOSTS, over)
    if move is None:
        return
    moved = next(one for one in state.vms if one.id == move.vm)
    assert state.clusters[0].ha_reservation
    assert moved.ha
    assert moved.migratable
    assert not moved.hosted_engine
    assert moved.host not in move.hosts
    counts = dict.fromkeys(HOSTS, 0)
    for one in state.vms:
        targets = {entry.host for entry in state.pending if entry.vm == one.id} or {one.host}
        for place in targets & set(HOSTS):
            counts[place] += one.ha
    for target in move.hosts:
        assert max(counts[moved.host] - 1, counts[target] + 1) < counts[moved.host]
