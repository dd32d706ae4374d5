"""From an end to moves: of several ends that a strategy has found, the one with the shortest way there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import count

import pytest

from ovirt_placement.planning.choosing.choice import Choice
from ovirt_placement.planning.choosing.greedy.bound import bound
from ovirt_placement.planning.choosing.greedy.strategy import Greedy
from ovirt_placement.planning.deadline import NEVER, Deadline
from ovirt_placement.planning.problem.posing import Repair, Wishes, pose
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.problem.score import score
from ovirt_placement.planning.problem.standing import Standing
from ovirt_placement.planning.solving import solve
from ovirt_placement.planning.value import value
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.placement.planning.choosing.clusters import drawn

#: Both stand wrong, neither host has room for another, and on h3 there is room for one.
STATE = snapshot(
    host("h1", free_mb=0), host("h2", free_mb=0), host("h3", free_mb=1024), vm("a", "h1"), vm("b", "h2"),
    group("a", vms="a", hosts_rule=TOGETHER, hosts="h2 h3"),
    group("b", vms="b", hosts_rule=TOGETHER, hosts="h1 h3"),
)  # fmt: skip
SWAPPED = {"a": "h2", "b": "h1"}


class Found:
    """A strategy that has come to these ends, the last is the best."""

    name = "found"
    goes_on = False

    def __init__(self, *ends: Mapping[str, str]) -> None:
        *self._others, self._best = ends

    def choose(self, problem: Problem, deadline: Deadline) -> Choice:
        standing = Standing(problem)
        for one, target in self._best.items():
            standing.move((one,), target)
        return Choice(self._best, score(standing), bound(problem), others=tuple(reversed(self._others)))


def moves(*ends: Mapping[str, str]) -> list[Move]:
    return [ordered.move for ordered in solve(pose(STATE, CLUSTER), Found(*ends), NEVER).moves]


def test_an_end_that_is_reached_by_a_detour_alone_gives_way_to_one_found_before_it() -> None:
    assert len(moves(SWAPPED)) == 3
    straight = moves({"a": "h2"}, {"a": "h3", "b": "h1"}, SWAPPED)
    assert straight == [Move(("a",), "h3"), Move(("b",), "h1")]


def test_an_end_that_is_reached_straight_is_kept() -> None:
    assert moves({"b": "h3", "a": "h2"}, {"a": "h3", "b": "h1"}) == [Move(("a",), "h3"), Move(("b",), "h1")]


@pytest.mark.parametrize("seed", [6, 24])
def test_more_time_makes_no_plan_of_the_greedy_strategy_worse(seed: int) -> None:
    """Time is counted in questions for it, so that it is the same on every machine."""
    wishes = Wishes(repair=frozenset({Repair.HARD, Repair.SOFT}))
    problem = pose(drawn(seed, hosts=8, vms=40, groups=22), CLUSTER, wishes=wishes)
    values = []
    for questions in (50, 150, 500, 1500):
        left = count(questions, -1)
        solution = solve(problem, Greedy(), Deadline(partial(next, left)))
        values.append(value(problem, [ordered.move for ordered in solution.moves]))
    assert values == sorted(values, reverse=True)
