"""No plan waits for another one, and none keeps the process from ending."""

from __future__ import annotations

import time
from collections.abc import Iterator
from multiprocessing.connection import wait

import pytest

from ovirt_enforcer.service.planners import PlannerProcesses, Planning, PlanningFailed, PlanQuestion
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.assignment.catalogue import StrategyName
from ovirt_placement.planning.problem.build_problem import PlanOptions
from tests.builders import APART, cluster, group, host, snapshot, vm

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]

#: Two clusters: in one, 400 VMs are to be parted on 450 hosts; in the other, two on two.
STATE = snapshot(
    cluster("large"),
    cluster("small"),
    *(host(f"l{number}", cluster="large") for number in range(450)),
    *(vm(f"v{number}", f"l{number // 3}", cluster="large") for number in range(400)),
    group("many", APART, " ".join(f"v{number}" for number in range(400)), cluster="large"),
    host("s1", cluster="small"),
    host("s2", cluster="small"),
    vm("a", "s1", cluster="small"),
    vm("b", "s1", cluster="small"),
    group("two", APART, "a b", cluster="small"),
)


def question(name: str, strategy: StrategyName = StrategyName.GREEDY) -> PlanQuestion:
    return PlanQuestion(
        cluster=name,
        frozen={},
        left_out={},
        spared={},
        options=PlanOptions(),
        strategy=strategy,
        deadline=30.0,
    )


@pytest.fixture
def planners() -> Iterator[PlannerProcesses]:
    found = PlannerProcesses()
    yield found
    found.close()


def awaited(planners: PlannerProcesses, planning: Planning) -> int:
    """How many steps the plan has, once it is there."""
    while (plan := planning.result()) is None:
        wait(planners.answers(), 0.1)
    return len(plan.steps)


def test_a_small_cluster_does_not_wait_for_a_large_one(planners: PlannerProcesses) -> None:
    large = planners.start(STATE, question("large"))
    small = planners.start(STATE, question("small"))
    assert awaited(planners, small) == 1
    assert large.result() is None
    assert awaited(planners, large) == 266


def test_they_can_be_ended_at_once(planners: PlannerProcesses) -> None:
    for _ in range(8):  # more than are made at once
        planners.start(STATE, question("large"))
    began = time.monotonic()
    planners.close()
    assert time.monotonic() - began < 1
    assert planners.answers() == []


def test_what_planning_raises_is_reported(planners: PlannerProcesses) -> None:
    spoilt: Snapshot = snapshot(cluster("small"), vm("a", "s1", cluster="small", memory_mb="none"))
    planning = planners.start(spoilt, question("small"))
    with pytest.raises(PlanningFailed, match="memory_mb"):
        awaited(planners, planning)
