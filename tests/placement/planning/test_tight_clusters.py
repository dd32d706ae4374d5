"""Nearly full clusters: where no way leads to the ends that look best, rules are repaired step by step."""

from __future__ import annotations

import pytest

from ovirt_placement.model import Snapshot
from ovirt_placement.planning import strategies
from ovirt_placement.planning.assignment.local_search import improved
from ovirt_placement.planning.plan import NEVER, Deadline, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.ends import value
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.planning.strategies import StrategyName
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.placement.planning.ordering.oracle import Cluster, Request
from tests.placement.planning.tight_clusters import scrambled, tangled


def planned(state: Snapshot) -> Plan:
    """Without a deadline, so that the load of a machine changes nothing."""
    return make_plan(state, CLUSTER, strategy=strategies.strategy(StrategyName.GREEDY), explained=False)


def left(state: Snapshot, plan: Plan) -> int:
    """Replay a plan as the definitions have it; how many hard rules are violated in the end."""
    cluster = Cluster(state)
    where = dict(cluster.start)
    for step in plan.steps:
        fault = cluster.why_not(where, {}, Request(step.vms, step.target))
        assert fault is None, f"{step}: {fault}"
        where |= dict.fromkeys(step.vms, step.target)
    return cluster.violated(where)


@pytest.mark.parametrize("seed", range(12))
def test_what_can_be_repaired_for_certain_is_repaired_to_the_last_rule(seed: int) -> None:
    state = scrambled(seed)
    assert left(state, planned(state)) == 0


@pytest.mark.system
def test_what_no_order_of_the_best_end_repairs_is_repaired_step_by_step() -> None:
    state = tangled(20)
    plan = planned(state)
    assert plan == planned(state)
    assert left(state, plan) == 0


@pytest.mark.nightly
def test_of_what_may_be_beyond_repair_little_is_left() -> None:
    """Which rule of one cluster is left hangs on the order of tries; of several, how many does not."""
    states = [tangled(seed) for seed in (0, 1, 5, 12, 21)]
    assert sum(left(state, planned(state)) for state in states) <= 8


def test_others_make_room_and_still_others_for_them() -> None:
    """To h3 the big one may go only once the one there is on h2, from which another must go to h4 before."""
    state = snapshot(
        host("h1", free_mb=0), host("h2", free_mb=4096), host("h3", free_mb=0), host("h4", free_mb=4096),
        vm("big", "h1", needs_mb=8192), vm("one", "h3", needs_mb=8192), vm("other", "h2", needs_mb=4096),
        group("on", vms="big", hosts_rule=TOGETHER, hosts="h3"),
    )  # fmt: skip
    problem = pose(state, CLUSTER)
    moves = improved(problem, (), (0, 0, 0, 1), NEVER)
    assert moves == (Move(("other",), "h4"), Move(("one",), "h2"), Move(("big",), "h3"))
    assert value(problem, moves) == (0, 0, 0, 3)


def test_without_time_nothing_is_tried() -> None:
    problem = pose(tangled(20), CLUSTER)
    assert improved(problem, (), (0, 0, 0, 1), Deadline(lambda: 0.0)) == ()
