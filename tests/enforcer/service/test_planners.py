"""No plan waits for another one, and none keeps the process from ending."""

import re
import time
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from ovirt_enforcer.planners import Call, CallFailed, PlannerProcesses, PlanQuestion
from ovirt_enforcer.plans import Holding
from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from ovirt_placement.planning.strategies import StrategyName, strategy
from tests.builders import APART, CLUSTER, cluster, group, host, snapshot, vm
from tests.scenarios.stage import play

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
        cluster=name, holding=Holding(), options=PlanOptions(), strategy=strategy, deadline=30.0
    )


@pytest.fixture
def planners() -> Iterator[PlannerProcesses]:
    found = PlannerProcesses()
    yield found
    found.close()


def awaited(planners: PlannerProcesses, planning: Call[Plan]) -> int:
    """How many steps the plan has, once it is there."""
    while not planning.over():
        wait(planners.answers(), 0.1)
    return len(planning.result().steps)


@pytest.mark.system
@pytest.mark.timing
def test_a_small_cluster_does_not_wait_for_a_large_one(planners: PlannerProcesses) -> None:
    large = planners.start(STATE, question("large"))
    small = planners.start(STATE, question("small"))
    assert awaited(planners, small) == 1
    assert not large.over()
    assert awaited(planners, large) == 266


@pytest.mark.system
@pytest.mark.timing
def test_they_can_be_ended_at_once(planners: PlannerProcesses) -> None:
    for _ in range(8):  # more than are made at once
        planners.start(STATE, question("large"))
    began = time.monotonic()
    planners.close()
    assert time.monotonic() - began < 1
    assert planners.answers() == []


@pytest.mark.system
@pytest.mark.timing
def test_what_planning_raises_is_reported(planners: PlannerProcesses) -> None:
    spoilt: Snapshot = snapshot(cluster("small"), vm("a", "s1", cluster="small", memory_mb="none"))
    planning = planners.start(spoilt, question("small"))
    with pytest.raises(CallFailed, match="memory_mb"):
        awaited(planners, planning)


DRAWN_STATE = snapshot(
    *(host(f"h{number}") for number in range(4)),
    *(vm(f"{twin}{number}", f"h{number}") for number in range(3) for twin in "ab"),
    *(group(f"g{number}", APART, f"a{number} b{number}") for number in range(3)),
)


def reported(folder: Path, mode: str) -> list[str]:
    """What a daemon says in five minutes."""
    folder.mkdir()
    (folder / "state.json").write_bytes(state_file.dumps(DRAWN_STATE))
    (folder / "story.toml").write_text(
        f'until = 300\n[enforcer]\nmode = "{mode}"\nstrategy = "random"\nmemory_headroom_percent = 0\n'
        "cpu_headroom_percent = 0\n"
    )
    return play(folder, folder)


@pytest.mark.system
def test_what_was_drawn_stands_until_somebody_approves_of_it(tmp_path: Path) -> None:
    """It is planned again every minute meanwhile."""
    waiting = {
        found[1]
        for line in reported(tmp_path / "approve", "approve")
        if (found := re.search(r"plan (\S+) waits for an approval", line))
    }
    assert len(waiting) == 1


@pytest.mark.system
def test_each_daemon_draws_for_itself_and_says_with_what_the_plan_is_repeated(tmp_path: Path) -> None:
    seeds = []
    for number in range(2):
        log = "\n".join(reported(tmp_path / str(number), "observe"))
        (summary,) = set(re.findall(r"\(random, seed (\d+):", log))
        plan = make_plan(DRAWN_STATE, CLUSTER, strategy=strategy(StrategyName.RANDOM, int(summary)))
        (step,) = plan.steps
        assert f"1. {step.vms[0]} from {step.sources[0]} to {step.target}: repairs" in log
        seeds.append(summary)
    assert seeds[0] != seeds[1]


@pytest.mark.system
def test_when_one_is_carried_out_the_next_is_drawn(tmp_path: Path) -> None:
    log = reported(tmp_path / "enforce", "enforce")
    assert len(set(re.findall(r"\(random, seed (\d+)", "\n".join(log)))) == 3
    hosts = {line.split()[-3]: line.split()[-1] for line in log if " = " in line}
    assert all(hosts[f"a{number}"] != hosts[f"b{number}"] for number in range(3))


def test_a_plan_whose_process_cannot_be_started_has_failed_and_the_next_one_is_made(
    planners: PlannerProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its cluster would wait for it for ever."""

    def none_left(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as without:
        without.setattr("ovirt_enforcer.planners._processes.Pipe", none_left)
        planning = planners.start(STATE, question("small"))
        with pytest.raises(CallFailed, match="Too many open files"):
            planning.result()
    assert planners.answers() == []
