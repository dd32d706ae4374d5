"""What no plan can beat: violations that must stay, and migrations that any plan needs at least."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ovirt_placement.planning.problem.counts import count
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.problem.score import Score, Value
from ovirt_placement.rules.constraints import AtLeast, Even


def bound(problem: Problem) -> Score:
    """A score that no end is better than; seldom one that can be reached."""
    violated = [goal for goal in problem.goals if goal.wanted and not goal.satisfied]
    lost = {goal.number for goal in violated if fixed(problem, goal)}
    hard, *soft = (
        sum(goal.level == level for goal in violated if goal.number in lost)
        for level in range(problem.levels)
    )
    others = [goal for goal in violated if goal.number not in lost]
    migrations = sum(goal.surplus for goal in independent(problem, others))
    return Score(hard, 0, 0, tuple(soft), 0, migrations, 0, 0)


def independent(problem: Problem, violated: Iterable[Goal]) -> list[Goal]:
    """Goals of which none can be repaired by moving the VMs of another, so that their costs add up.

    What matters more comes first, then what costs more. A sum, for one, is repaired by VMs on its own hosts
    alone.
    """
    start, taken, found = ProblemPlacement(problem), set[str](), list[Goal]()
    for goal in sorted(violated, key=lambda goal: (goal.level, -goal.surplus, goal.number)):
        if goal.form is None:
            continue
        local = goal.limit is not None or goal.allowed is not None or goal.sum is not None
        moving = goal.constraint.offenders(start) if local else goal.vms
        if taken.isdisjoint(moving):
            taken.update(moving)
            found.append(goal)
    return found


def leavers(problem: Problem, violated: Iterable[Goal]) -> list[tuple[list[str], int]]:
    """Where no more migrations are made than independent goals cost: VMs, and how many of them move.

    No other VM moves then, and none stays that a goal cannot do without. With one that leaves a sum, the
    largest of the others must bring it below its limit, and every other sum on the same hosts.
    """
    violated, start = list(violated), ProblemPlacement(problem)
    found = []
    for goal in independent(problem, violated):
        vms = [vm for vm in goal.constraint.offenders(start) if problem.targets[vm]]
        if goal.gathers:
            vms = [vm for vm in goal.vms if problem.targets[vm]]
        for other in violated:
            if goal.sum is not None and other.sum is not None and other.sum.hosts == goal.sum.hosts:
                vms = _large_enough(vms, other.sum.amounts, start.faults(other), goal.surplus)
        found.append((vms, goal.surplus))
    return found


def _large_enough(vms: Iterable[str], amounts: Mapping[str, int], excess: int, number: int) -> list[str]:
    """Those of which a set with this number of VMs makes up an excess."""
    largest = sorted(vms, key=lambda vm: -amounts[vm])
    others = sum(amounts[vm] for vm in largest[: number - 1])
    least = amounts[largest[number - 1]] if number <= len(largest) else 0
    return [vm for vm in largest if others + min(least, amounts[vm]) >= excess]


def fixed(problem: Problem, goal: Goal) -> bool:
    """Whether VMs that cannot move to where it wants them, or too few hosts, break it in every end."""
    if goal.allowed is not None:
        return any(
            not goal.right(problem.where[vm]) and not any(map(goal.right, problem.targets[vm]))
            for vm in goal.vms
        )
    if isinstance(goal.form, Even | AtLeast):
        return False
    where, targets = problem.where, problem.targets
    staying = count(goal.form, [(vm, where[vm]) for vm in goal.vms if not targets[vm] - {where[vm]}])
    return (staying is not None and staying.faults > 0) or _too_many(problem, goal)


def _too_many(problem: Problem, goal: Goal) -> bool:
    """Whether it has more VMs than all places together may have."""
    limit = goal.limit
    if limit is None:
        return False
    needed = -(-len(limit.sets(goal.vms)) // limit.most)
    places: set[str] = set()
    for vm in goal.vms:
        places.update(map(limit.place, (problem.where[vm], *problem.targets[vm])))
        if len(places) >= needed:
            return False
    return True


def least_migrations(problem: Problem, worth: Value, bound: Value | None) -> int:
    """Migrations that every legal sequence has whose end is as good as one of this worth, or better.

    `bound` is what no end is better than; None where it is not known which hosts every VM may come to. A
    better end may repair more, and then leave violated what matters less: each way to be as good is looked
    at. Of goals that are independent, all but as many as may remain violated cost what each costs by itself.
    """
    violated = [goal for goal in problem.goals if goal.wanted and not goal.satisfied]
    lost = {goal for goal in violated if bound is not None and fixed(problem, goal)}
    chosen = independent(problem, [goal for goal in violated if goal not in lost])
    levels = range(problem.levels)
    costs = [sorted(goal.surplus for goal in chosen if goal.level == level) for level in levels]
    hopeless = [sum(goal.level == level for goal in lost) for level in levels]
    least = min(_least(costs, hopeless, limits) for limits in _limits(problem.levels, worth, bound))
    return max(least, bound[-1]) if bound is not None and worth[:-1] <= bound[:-1] else least


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
