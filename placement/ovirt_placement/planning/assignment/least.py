"""How many migrations any plan needs at least that leaves no more violated than a given one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from ovirt_placement.planning.assignment.greedy.bound import fixed
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.value import Value


def least_migrations(problem: Problem, worth: Value, bound: Value | None) -> int:
    """Migrations that every legal sequence has whose end is as good as one of this worth, or better.

    `bound` is what no end is better than; None where it is not known which hosts every VM may come to. A
    better end may repair more, and then leave violated what matters less: each way to be as good is looked
    at. Of goals without a common VM, all but as many as may remain violated cost what they cost by
    themselves.
    """
    violated = [goal for goal in problem.goals if goal.wanted and not goal.satisfied]
    lost = {goal for goal in violated if bound is not None and fixed(problem, goal)}
    costs = _costs(problem.levels, [goal for goal in violated if goal not in lost])
    hopeless = [sum(goal.level == level for goal in lost) for level in range(problem.levels)]
    least = min(_least(costs, hopeless, limits) for limits in _limits(problem.levels, worth, bound))
    return max(least, bound[-1]) if bound is not None and worth[:-1] <= bound[:-1] else least


def _costs(levels: int, violated: Iterable[Goal]) -> list[list[int]]:
    """By level, what goals without a common VM cost at least, the cheapest first."""
    costs: list[list[int]] = [[] for _ in range(levels)]
    taken: set[str] = set()
    cost = {goal: goal.surplus for goal in violated if goal.form is not None}

    def rank(goal: Goal) -> tuple[int, int, int]:
        return goal.level, -cost[goal], goal.number

    for goal in sorted(cost, key=rank):
        if taken.isdisjoint(goal.vms):
            taken.update(goal.vms)
            costs[goal.level].append(cost[goal])
    return [sorted(of_level) for of_level in costs]


def _limits(levels: int, worth: Value, bound: Value | None) -> Iterator[list[float]]:
    """How many goals of each level may remain violated: in ends as good, and in those better in a field."""
    places = [0, *range(2, levels + 1)]
    for better in range(len(worth) - 1):
        known = bound is not None and worth[:better] == bound[:better]
        if worth[better] > (bound[better] if bound is not None and known else 0):
            yield [worth[place] - (place == better) if place <= better else math.inf for place in places]
    yield [worth[place] for place in places]


def _least(costs: Sequence[Sequence[int]], hopeless: Sequence[int], limits: Sequence[float]) -> int:
    return sum(
        sum(of_level[: max(0, len(of_level) - int(max(0, limit - lost)))])
        for of_level, lost, limit in zip(costs, hopeless, limits, strict=True)
        if limit < math.inf
    )
