"""What a standing keeps up to date as VMs move is what counting anew would find."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.planning.problem.posing import Repair, Wishes, pose
from ovirt_placement.planning.problem.score import score
from ovirt_placement.planning.problem.standing import Standing
from tests.builders import APART, CLUSTER, group, host, needed_mb, snapshot, vm
from tests.placement.planning.choosing.clusters import drawn
from tests.placement.planning.choosing.ends import Ends


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9))
def test_violations_and_room_are_right_after_any_moves(seed: int) -> None:
    cluster, dice = drawn(seed, hosts=5, vms=8, groups=6), random.Random(seed)
    problem, ends = pose(cluster, CLUSTER, wishes=Wishes(repair=frozenset(Repair))), Ends(cluster)
    standing = Standing(problem)
    for _ in range(12):
        standing.move((dice.choice(sorted(problem.where)),), dice.choice(problem.hosts))
        end = ends.after(standing.moved)
        hard, soft, migrations = ends.value(end)
        found = score(standing)
        assert (found.hard, found.soft, found.migrations) == (hard, soft, migrations)
        assert found.pairs == ends.pairs(end)
        for known in cluster.hosts:
            taken = sum(needed_mb(one) for one, now in zip(ends.vms, end, strict=True) if now == known.id)
            before = sum(needed_mb(one) for one in ends.vms if one.host == known.id)
            assert standing.free_mb(known.id) == known.free_mb + before - taken


def test_a_first_move_is_counted_once() -> None:
    cluster = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h2"), group("g", APART, "a b"))
    standing = Standing(pose(cluster, CLUSTER))
    standing.move(("a",), "h2")
    assert standing.violations() == (1,)
    standing.move(("a",), "h1")
    assert standing.violations() == (0,)
