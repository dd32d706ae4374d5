"""What a placement keeps up to date as VMs move is what counting again would find."""

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ovirt_placement.model import PlacementRule
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.problem.ends import score
from ovirt_placement.planning.problem.placement import ProblemPlacement
from tests.builders import APART, CLUSTER, group, host, needed_mb, snapshot, vm
from tests.examples import examples
from tests.placement.planning.brute_force import Ends
from tests.placement.planning.clusters import drawn
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import concerns, lets_step, running, satisfied

HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d")
MOVES = st.lists(st.tuples(st.sampled_from(VMS), st.sampled_from(HOSTS)), max_size=4)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(placement_rules("r", VMS, HOSTS), st.tuples(*[st.sampled_from(HOSTS)] * 4), MOVES)
def test_after_any_moves_a_count_agrees_with_the_definition(
    rule: PlacementRule, at: tuple[str, ...], moves: list[tuple[str, str]]
) -> None:
    vms = (
        vm(name, there, vcpus=1 + number % 2)
        for number, (name, there) in enumerate(zip(VMS, at, strict=True))
    )
    state = snapshot(*map(host, HOSTS), *vms, rule)
    problem = pose(state, CLUSTER)
    if not problem.goals:
        return
    (goal,) = problem.goals
    placement, where = ProblemPlacement(problem), running(state)
    for name, target in moves:
        placement.move((name,), target)
        where[name] = target
    assert placement.violated(goal) is not satisfied(rule, state, where)
    if satisfied(rule, state, running(state)) and not satisfied(rule, state, where):
        return  # no legal migrations lead there
    for name in VMS:
        for target in HOSTS:
            if concerns(rule, state, name) and where[name] != target:
                assert placement.admits(goal, name, target) is lets_step(rule, state, where, name, target)


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 10**9))
def test_violations_and_room_are_right_after_any_moves(seed: int) -> None:
    cluster, dice = drawn(seed, hosts=5, vms=8, groups=6), random.Random(seed)
    problem, ends = pose(cluster, CLUSTER, options=PlanOptions(repair=frozenset(Repair))), Ends(cluster)
    placement = ProblemPlacement(problem)
    for _ in range(12):
        placement.move((dice.choice(sorted(problem.where)),), dice.choice(problem.hosts))
        end = ends.after(placement.moved)
        hard, soft, migrations = ends.value(end)
        found = score(placement)
        assert (found.hard, found.soft, found.migrations) == (hard, soft, migrations)
        assert found.excess == ends.pairs(end)
        for known in cluster.hosts:
            taken = sum(needed_mb(one) for one, now in zip(ends.vms, end, strict=True) if now == known.id)
            before = sum(needed_mb(one) for one in ends.vms if one.host == known.id)
            assert placement.free_mb(known.id) == known.free_mb + before - taken


def test_a_first_move_is_counted_once() -> None:
    cluster = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h2"), group("g", APART, "a b"))
    placement = ProblemPlacement(pose(cluster, CLUSTER))
    placement.move(("a",), "h2")
    assert placement.violations() == (1,)
    placement.move(("a",), "h1")
    assert placement.violations() == (0,)


def test_headroom_that_was_gone_before_is_not_taken_by_who_comes() -> None:
    cluster = snapshot(host("h1"), host("h2", memory_mb=10240, free_mb=512), vm("a", "h1", needs_mb=256))
    placement = ProblemPlacement(pose(cluster, CLUSTER, options=PlanOptions(memory_headroom=0.1)))
    placement.put({"a": "h2"})
    assert score(placement).headroom_deficit_mb == 256
