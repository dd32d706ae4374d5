"""From an end to moves, and the time for it: of several ends the one with the shortest way there."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count

import pytest

from ovirt_placement.planning.plan import NEVER, NO_TIME, Deadline
from ovirt_placement.planning.problem.bound import bound
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair, pose
from ovirt_placement.planning.problem.ends import Strategy, StrategyChoice, value
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.solver.greedy import Greedy
from ovirt_placement.planning.strategies import solve
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.placement.planning.clusters import drawn


@dataclass
class Clock:
    """A clock, and the time in which a process has a CPU.

    `busy` is the share of the time that the process gets; above 1 where its threads work side by side.
    """

    busy: float = 1.0
    now: float = 1000.0
    worked: float = 7.0

    def run(self, seconds: float) -> None:
        self.now += seconds
        self.worked += seconds * self.busy


class Found(Strategy):
    """A strategy that has come to this end."""

    name = "found"
    goes_on = False

    def __init__(self, end: Mapping[str, str]) -> None:
        self._end = end

    def choose(
        self, problem: Problem, deadline: Deadline, known: StrategyChoice | None = None
    ) -> StrategyChoice:
        return StrategyChoice(self._end, bound(problem))


def test_a_part_of_the_way_that_repairs_nothing_is_not_taken() -> None:
    """There is no time to find out that no detour brings a VM to a full host, nor who moves for nothing."""
    state = snapshot(
        host("h1", free_mb=0), host("h2", free_mb=0), host("h3"), vm("a", "h1", needs_mb=2048), vm("b", "h1"),
        vm("c", "h2"), group("a", vms="a", hosts_rule=TOGETHER, hosts="h2"),
    )  # fmt: skip
    *_, found = solve(pose(state, CLUSTER), Found({"a": "h2", "b": "h3"}), NO_TIME)
    assert (found.moves, found.proven) == ((), False)


@pytest.mark.system
@pytest.mark.parametrize("seed", [6, 24])
def test_more_time_makes_no_plan_of_the_greedy_strategy_worse(seed: int) -> None:
    """Time is counted in questions for it, so that it is the same on every machine."""
    options = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))
    problem = pose(drawn(seed, hosts=8, vms=40, groups=22), CLUSTER, options=options)
    values = []
    for questions in (50, 150, 500, 1500):
        left = count(questions, -1)
        *_, solution = solve(problem, Greedy(), Deadline(partial(next, left)))
        values.append(value(problem, solution.moves))
    assert values == sorted(values, reverse=True)


def ending(clock: Clock, seconds: float) -> Deadline:
    return Deadline.after(seconds, lambda: clock.now, lambda: clock.worked)


def worked_in(clock: Clock, deadline: Deadline) -> float:
    began = clock.worked
    while not deadline.over:
        clock.run(0.125)
    return clock.worked - began


@pytest.mark.parametrize("busy", [1.0, 0.5, 0.25, 2.0])
def test_the_clock_is_the_limit_on_every_machine(busy: float) -> None:
    clock = Clock(busy)
    deadline = ending(clock, 30.0)
    clock.run(29.5)
    assert not deadline.over
    clock.run(0.5)
    assert deadline.over


def test_a_share_is_as_much_work_on_a_busy_machine_as_on_an_idle_one() -> None:
    idle, busy = Clock(1.0), Clock(0.5)
    assert (
        worked_in(idle, ending(idle, 30.0).within(0.3))
        == worked_in(busy, ending(busy, 30.0).within(0.3))
        == 9.0
    )


def test_a_stage_leaves_half_of_the_rest_by_the_clock_to_those_after_it() -> None:
    clock = Clock(busy=0.1)
    deadline = ending(clock, 30.0)
    worked_in(clock, deadline.within(0.6))
    assert deadline.seconds_left() == 6.0


def test_nothing_is_lent_to_a_stage_after_which_there_is_work_to_be_done() -> None:
    clock = Clock(busy=0.1)
    deadline = ending(clock, 32.0)
    worked_in(clock, deadline.within(0.75, lent=0.0))
    assert deadline.seconds_left() == 8.0


def test_threads_that_work_side_by_side_do_not_shorten_a_stage() -> None:
    clock = Clock(busy=2.0)
    deadline = ending(clock, 30.0)
    worked_in(clock, deadline.within(0.5))
    assert deadline.seconds_left() == 15.0


def test_a_share_of_a_share_ends_within_it() -> None:
    clock = Clock(busy=0.5)
    outer = ending(clock, 32.0).within(0.5)
    assert worked_in(clock, outer.within(0.25)) == 4.0
    assert not outer.over
    assert worked_in(clock, outer) <= 12.0


def test_without_a_limit_a_share_has_none() -> None:
    share = NEVER.within(0.1)
    assert (share.over, share.seconds_left()) == (False, math.inf)
