"""Plans of tiny clusters against brute force: as good as any, legal, and no fewer would do."""

from functools import partial
from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.planning import strategies
from ovirt_placement.planning.plan import Deadline, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.bound import bound, least_migrations
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.planning.problem.ends import Strategy, Value
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.solver.greedy import Greedy
from ovirt_placement.planning.steps import apply, misfit
from ovirt_placement.planning.strategies import Random
from tests.builders import APART, CLUSTER, SOFT_APART, SOFT_TOGETHER, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.planning.brute_force import BruteForce, Violations
from tests.placement.planning.clusters import scrambled, tiny_clusters
from tests.placement.planning.plans import ALL, PARTLY

#: Some with groups that VMs tie together which are down.
CLUSTERS = st.one_of(tiny_clusters(), tiny_clusters(tied=True))


def planned(cluster: Snapshot, options: PlanOptions = ALL) -> Plan:
    return make_plan(cluster, CLUSTER, options=options)


def end_of(cluster: Snapshot, plan: Plan, *, partly: bool = False) -> tuple[Violations, int]:
    """Follow the plan with the oracle's eyes: each step must be one that it knows as legal."""
    oracle = BruteForce(cluster, partly=partly)
    at, migrations = oracle.follow(plan.steps)
    return oracle.worth(at), migrations


@settings(max_examples=examples(100), deadline=None)
@given(CLUSTERS)
def test_no_plan_repairs_more_or_needs_fewer_migrations(cluster: Snapshot) -> None:
    plan = planned(cluster)
    score, migrations = end_of(cluster, plan)
    assert (score, migrations) == BruteForce(cluster).best()
    assert (plan.proven, plan.at_least, len(plan.remaining)) == (True, migrations, sum(score))
    assert all(rule.obstacles for rule in plan.remaining)


def bounded(cluster: Snapshot) -> Plan:
    """Without a search of all that can be reached: as in clusters too large for that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategies, "shortest", lambda problem, least, deadline: None)
        return planned(cluster)


def nearly_full(seed: int) -> Snapshot:
    return scrambled(seed, hosts=3 + seed % 2, vms=6, groups=4, tries=40)


@settings(max_examples=examples(80), deadline=None)
@given(tiny_clusters() | st.builds(nearly_full, st.integers(0, 2_000)))
def test_what_is_proven_by_a_bound_alone_is_true(cluster: Snapshot) -> None:
    plan = bounded(cluster)
    if plan.proven:
        assert end_of(cluster, plan) == BruteForce(cluster).best()


def test_a_plan_with_a_detour_is_not_proven_by_a_bound_that_knows_of_no_order() -> None:
    """Two VMs change places by way of a third host."""
    state = snapshot(
        host("h1", free_mb=0), host("h2", free_mb=0), host("h3", free_mb=2048),
        vm("a", "h1", needs_mb=2048), vm("b", "h2", needs_mb=2048),
        group("a", vms="a", hosts_rule=SOFT_TOGETHER, hosts="h2"),
        group("b", vms="b", hosts_rule=SOFT_TOGETHER, hosts="h1"),
    )  # fmt: skip
    plan = bounded(state)
    assert (plan.migrations, plan.at_least, plan.proven) == (3, 2, False)
    searched = planned(state)
    assert (searched.migrations, searched.at_least, searched.proven) == (3, 3, True)


@settings(max_examples=examples(60), deadline=None)
@given(CLUSTERS, st.sampled_from([None, Greedy(), Random()]), st.integers(0, 200))
def test_no_plan_that_leaves_no_more_violated_has_fewer_migrations_than_are_said_to_be_needed(
    cluster: Snapshot, strategy: Strategy | None, questions: int
) -> None:
    """Time is counted in questions for it: most plans are cut short."""
    left = count(questions, -1)
    deadline = Deadline(partial(next, left))
    plan = make_plan(cluster, CLUSTER, options=ALL, strategy=strategy, deadline=deadline)
    oracle = BruteForce(cluster)
    worth, migrations = end_of(cluster, plan)
    fewest = min(cost for at, cost in oracle.cheapest().items() if oracle.worth(at) <= worth)
    assert plan.at_least <= fewest <= migrations
    assert not plan.proven or (worth, migrations) == oracle.best()


@settings(max_examples=examples(30), deadline=None)
@given(tiny_clusters(), st.integers(0, 60), st.integers(0, 60))
def test_the_optimal_plan_is_never_worse_than_the_greedy_one_nor_is_one_for_which_there_is_more_time(
    cluster: Snapshot, questions: int, more: int
) -> None:
    def reached(strategy: Strategy | None, questions: int) -> tuple[Violations, int]:
        deadline = Deadline(partial(next, count(questions, -1)))
        return end_of(cluster, make_plan(cluster, CLUSTER, options=ALL, strategy=strategy, deadline=deadline))

    optimal = reached(None, questions)
    assert optimal <= reached(Greedy(), questions)
    assert reached(None, questions + more) <= optimal


@settings(max_examples=examples(30), deadline=None)
@given(tiny_clusters(crowds=True))
def test_what_cannot_hold_is_spread_as_far_as_it_can_be(cluster: Snapshot) -> None:
    plan = planned(cluster, PARTLY)
    assert plan.proven
    assert end_of(cluster, plan, partly=True) == BruteForce(cluster, partly=True).best()
    assert end_of(cluster, plan)[0] == end_of(cluster, planned(cluster))[0]


@settings(max_examples=examples(30), deadline=None)
@given(tiny_clusters(), st.randoms(use_true_random=False))
def test_the_order_in_which_the_engine_lists_things_changes_nothing(cluster: Snapshot, random: Any) -> None:
    def shuffled(parts: tuple[Any, ...]) -> tuple[Any, ...]:
        mixed = list(parts)
        random.shuffle(mixed)
        return tuple(mixed)

    mixed = msgspec.structs.replace(
        cluster, hosts=shuffled(cluster.hosts), vms=shuffled(cluster.vms),
        affinity_groups=shuffled(cluster.affinity_groups),
    )  # fmt: skip
    assert [(step.vms, step.target) for step in planned(mixed).steps] == [
        (step.vms, step.target) for step in planned(cluster).steps
    ]


@settings(max_examples=examples(40), deadline=None)
@given(tiny_clusters())
def test_with_hard_rules_alone_to_repair_what_is_soft_is_reported_and_not_explained(
    cluster: Snapshot,
) -> None:
    plan = make_plan(cluster, CLUSTER)
    score, _ = end_of(cluster, plan)
    assert score[0] == BruteForce(cluster).best()[0][0]
    assert len(plan.remaining) == sum(score)
    assert all(bool(rule.obstacles) is rule.hard for rule in plan.remaining)


@settings(max_examples=examples(40), deadline=None)
@given(tiny_clusters())
def test_the_rest_of_a_plan_is_what_a_new_plan_would_cost(cluster: Snapshot) -> None:
    """So a restart between two steps costs no migration."""
    plan = planned(cluster)
    if plan.steps:
        after = apply(cluster, plan.steps[0])
        assert planned(after).migrations == plan.migrations - len(plan.steps[0].vms)
        rest = msgspec.structs.replace(plan, steps=plan.steps[1:])
        assert misfit(after, rest) is None


def posed(cluster: Snapshot) -> Problem:
    return pose(cluster, CLUSTER, options=ALL)


def as_value(violations: Violations, migrations: int) -> Value:
    """Without headroom nothing of it is taken."""
    hard, *others = violations
    return (hard, 0, *others, migrations)


@settings(max_examples=examples(100), deadline=None)
@given(tiny_clusters())
def test_no_sequence_that_leaves_as_little_violated_is_shorter(cluster: Snapshot) -> None:
    problem, oracle = posed(cluster), BruteForce(cluster)
    reached = sorted((oracle.worth(at), cost) for at, cost in oracle.cheapest().items())
    fewest = reached[0][1]
    for worth, cost in reached:
        fewest = min(fewest, cost)
        value = as_value(worth, cost)
        assert least_migrations(problem, value, None) <= fewest
        assert least_migrations(problem, value, bound(problem)) <= fewest


#: Three hard groups, of which each costs one migration, and a soft one of which it is two.
VIOLATED = snapshot(
    *(host(f"h{number}") for number in range(4)),
    *(vm(name, "h0") for name in "abcdefg"),
    vm("x", "h1"), vm("y", "h2"),
    group("ab", APART, "a b"), group("cd", APART, "c d"), group("xy", TOGETHER, "x y"),
    group("efg", SOFT_APART, "e f g"),
)  # fmt: skip


def test_of_groups_without_common_vms_those_count_that_must_hold() -> None:
    problem = posed(VIOLATED)
    nothing = (0, 0, 0, 0, 0)
    assert least_migrations(problem, (0, 0, 0, 0, 9), nothing) == 5
    assert least_migrations(problem, (0, 0, 1, 0, 9), nothing) == 3
    assert least_migrations(problem, (1, 0, 0, 0, 9), nothing) == 3  # or all hard ones, and the soft one not


def test_those_that_cost_most_may_be_the_ones_that_stay_violated() -> None:
    state = snapshot(
        *(host(f"h{number}") for number in range(4)), *(vm(name, "h0") for name in "abcde"),
        group("ab", SOFT_APART, "a b"), group("cde", SOFT_APART, "c d e"),
    )  # fmt: skip
    assert least_migrations(posed(state), (0, 0, 1, 0, 9), None) == 1


def test_what_no_end_can_be_is_not_reckoned_with() -> None:
    """Where one hard group is known to remain violated, a plan as good repairs the soft one."""
    problem = posed(VIOLATED)
    assert least_migrations(problem, (1, 0, 0, 0, 9), (1, 0, 0, 0, 0)) == 4
    assert least_migrations(problem, (1, 0, 0, 0, 9), (1, 0, 0, 0, 7)) == 7


def test_groups_that_share_vms_do_not_add_up() -> None:
    state = snapshot(
        *(host(f"h{number}") for number in range(4)), *(vm(name, "h0") for name in "abc"),
        group("ab", APART, "a b"), group("bc", APART, "b c"),
    )  # fmt: skip
    assert least_migrations(posed(state), (0, 0, 0, 1), (0, 0, 0, 0)) == 1
