"""What a placement keeps up to date as VMs move is what counting again would find."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.problem.ends import score
from ovirt_placement.planning.problem.placement import ProblemPlacement
from tests.builders import APART, CLUSTER, group, host, needed_mb, snapshot, vm
from tests.examples import examples
from tests.placement.planning.assignment.clusters import drawn
from tests.placement.planning.assignment.ends import Ends


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
