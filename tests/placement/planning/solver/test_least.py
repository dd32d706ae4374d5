"""How many migrations are needed at least: never more than brute force finds, and not nothing either."""

from hypothesis import given, settings

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.problem.bound import bound, least_migrations
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.ends import Value
from ovirt_placement.planning.problem.problem import Problem
from tests.builders import APART, CLUSTER, SOFT_APART, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.planning.brute_force import BruteForce, Violations
from tests.placement.planning.clusters import tiny_clusters
from tests.placement.planning.plans import ALL


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
