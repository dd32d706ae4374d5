"""The greedy strategy against all ends of tiny clusters, and on clusters that are large in one way."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.assignment.greedy import Greedy
from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.problem.ends import StrategyChoice
from ovirt_placement.planning.problem.problem import Problem
from tests.builders import APART, CLUSTER, SOFT_APART, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.planning.assignment.clusters import drawn
from tests.placement.planning.assignment.ends import Ends
from tests.placement.planning.ordering.ordered import order
from tests.speed import seconds_here

ALL = frozenset({Repair.HARD, Repair.SOFT})
#: Far above what it takes, and far below what it took once.
PATIENCE_SECONDS = 5.0


def problem_of(cluster: Snapshot, **options: float) -> Problem:
    return pose(cluster, CLUSTER, options=PlanOptions(repair=ALL, **options))  # type: ignore[arg-type]


def chosen(cluster: Snapshot, **options: float) -> StrategyChoice:
    return Greedy().choose(problem_of(cluster, **options), NEVER)


@pytest.mark.system
def test_tiny_clusters_need_at_most_half_as_many_migrations_again_on_average() -> None:
    needed = taken = repaired = best_ends = 0
    clusters = 250
    for seed in range(clusters):
        cluster = drawn(seed)
        ends, choice = Ends(cluster), chosen(cluster)
        best, value = ends.best_end(), ends.value(ends.after(choice.where))
        assert best <= value <= ends.value(ends.start)
        if value[:2] == best[:2]:
            repaired += 1
            needed += best[2]
            taken += value[2]
            best_ends += value == best
    print(f"\n{repaired} of {clusters} repair as much as any end, {best_ends} with as few migrations:")
    print(f"{taken} instead of {needed}, {taken / needed:.3f} times as many")
    assert taken <= 1.5 * needed
    assert repaired >= 0.95 * clusters


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 10**9))
def test_an_end_is_legal_and_as_good_as_it_says(seed: int) -> None:
    cluster = drawn(seed, hosts=5, vms=9, groups=6)
    ends, choice = Ends(cluster), chosen(cluster)
    end = ends.after(choice.where)
    assert ends.why_illegal(end) is None
    hard, soft, migrations = ends.value(end)
    assert (choice.score.hard, sum(choice.score.soft), choice.score.migrations) == (
        hard,
        sum(soft),
        migrations,
    )
    assert choice.bound <= choice.score
    movable = {known.id for known in ends.vms if known.migratable}
    assert choice.where.keys() <= movable


@settings(max_examples=examples(50), deadline=None)
@given(st.integers(0, 10**9))
def test_the_same_cluster_has_the_same_choice(seed: int) -> None:
    assert chosen(drawn(seed)) == chosen(drawn(seed))


def test_without_time_all_stays_where_it_is() -> None:
    cluster = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), group("g", APART, "a b"))
    assert not Greedy().choose(problem_of(cluster), Deadline(lambda: 0.0)).where


def test_a_group_follows_the_one_that_must_be_on_a_host() -> None:
    cluster = snapshot(
        *map(host, ("h1", "h2", "h3")),
        vm("a", "h1"),
        vm("b", "h2"),
        group("together", TOGETHER, "a b"),
        group("on h3", vms="a", hosts_rule=TOGETHER, hosts="h3"),
    )
    assert chosen(cluster).where == {"a": "h3", "b": "h3"}


def test_headroom_is_kept_where_another_host_will_do() -> None:
    """The first of the hosts is the emptiest by its share, and has too little left above the headroom."""
    cluster = snapshot(
        host("h1"),
        host("small", memory_mb=4096, free_mb=2048, cpu_percent=0),
        host("busy", memory_mb=65536, free_mb=20000, cpu_percent=85),
        host("full", memory_mb=65536, free_mb=14000, cpu_percent=20),
        vm("a", "h1", needs_mb=2048, vcpus=2, usage_cpu_percent=80),
        vm("b", "h1", needs_mb=2048, vcpus=2, usage_cpu_percent=80),
        group("g", APART, "a b"),
    )
    found = chosen(cluster, memory_headroom=0.1, cpu_headroom=0.1)
    assert set(found.where.values()) == {"full"}
    assert found.score.headroom_deficit_mb == found.score.headroom_deficit_cpu == 0


@pytest.mark.parametrize(("rule", "moved"), [(APART, 1), (SOFT_APART, 0)])
def test_headroom_is_given_up_for_a_hard_rule_alone(rule: object, moved: int) -> None:
    cluster = snapshot(
        host("h1"),
        host("h2", memory_mb=65536, free_mb=2048),
        vm("a", "h1", migratable=False),
        vm("b", "h1"),
        group("g", rule, "a b"),  # type: ignore[arg-type]
    )
    found = chosen(cluster, memory_headroom=0.1, cpu_headroom=0.1)
    assert len(found.where) == moved == bool(found.score.headroom_deficit_mb)


def test_a_full_host_is_emptied_a_little_for_a_hard_rule() -> None:
    cluster = snapshot(
        host("h1", free_mb=0),
        host("h2", free_mb=0),
        host("h3", free_mb=1024),
        vm("a", "h1", needs_mb=2048),
        vm("b", "h2", needs_mb=2048, migratable=False),
        vm("small", "h2", needs_mb=1024),
        vm("large", "h2", needs_mb=4096),
        vm("one", "h2", needs_mb=1024),
        host("h4", free_mb=1024),
        group("g", TOGETHER, "a b"),
    )
    found = chosen(cluster)
    assert found.score.hard == 0
    assert found.where["a"] == "h2"
    assert {"small", "one"} <= found.where.keys()


def timed(cluster: Snapshot) -> tuple[StrategyChoice, float]:
    began = time.process_time()
    problem = problem_of(cluster)
    choice = Greedy().choose(problem, NEVER)
    assert not order(problem, choice.where, NEVER).stuck
    return choice, time.process_time() - began


@pytest.mark.system
def test_a_large_group_that_fits_nowhere_is_given_up_soon() -> None:
    names = [f"v{number:04}" for number in range(1000)]
    cluster = snapshot(
        *(host(f"h{number:02}", memory_mb=2**19, free_mb=2**18) for number in range(50)),
        *(vm(name, f"h{number % 50:02}") for number, name in enumerate(names)),
        group("g", TOGETHER, " ".join(names)),
    )
    choice, seconds = timed(cluster)
    assert not choice.where
    assert seconds < seconds_here(PATIENCE_SECONDS)


def test_a_large_group_parts_altogether() -> None:
    names = [f"v{number:03}" for number in range(500)]
    cluster = snapshot(
        *(host(f"h{number:03}") for number in range(500)),
        *(vm(name, f"h{number // 2:03}") for number, name in enumerate(names)),
        group("g", APART, " ".join(names)),
    )
    choice, _ = timed(cluster)
    assert (choice.score.hard, choice.score.migrations) == (0, 250)
    assert max(Counter(choice.where.values()).values()) == 1
