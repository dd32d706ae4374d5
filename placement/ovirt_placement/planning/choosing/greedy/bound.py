"""What any end breaks and moves at least: goals that fixed VMs break, and goals without a common VM."""

from __future__ import annotations

from collections import Counter

from ovirt_placement.planning.problem.goal import Goal, Shape
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.problem.score import Score


def bound(problem: Problem) -> Score:
    """A score that no end is better than; seldom one that can be reached."""
    broken = [goal for goal in problem.goals if goal.wanted and not goal.held]
    violations = [0] * problem.levels
    taken: set[str] = set()
    migrations = memory_mb = 0
    for goal in broken:
        if fixed(problem, goal):
            violations[goal.level] += 1
        elif goal.shape is not Shape.OTHER and taken.isdisjoint(goal.vms):
            taken.update(goal.vms)
            count = needed(problem, goal)
            migrations += count
            memory_mb += sum(sorted(problem.memory_mb[vm] for vm in goal.vms)[:count])
    hard, *soft = violations
    return Score(hard, 0, 0, tuple(soft), 0, migrations, memory_mb, 0)


def fixed(problem: Problem, goal: Goal) -> bool:
    """Whether VMs that cannot move to where it wants them, or too few hosts, break it in every end."""
    if goal.shape is Shape.HOSTS:
        return any(
            not goal.right(problem.where[vm]) and not any(map(goal.right, problem.targets[vm]))
            for vm in goal.vms
        )
    fixed = Counter(problem.where[vm] for vm in goal.vms if not problem.targets[vm] - {problem.where[vm]})
    if goal.shape is Shape.SPREAD and _too_many(problem, goal):
        return True
    return goal.shape is not Shape.OTHER and goal.broken_by(fixed)


def _too_many(problem: Problem, goal: Goal) -> bool:
    """Whether it has more VMs than there are hosts for all of them together."""
    places: set[str] = set()
    for vm in goal.vms:
        places.add(problem.where[vm])
        places |= problem.targets[vm]
        if len(places) >= len(goal.vms):
            return False
    return True


def needed(problem: Problem, goal: Goal) -> int:
    """How many of its members must move at least."""
    crowd = Counter(problem.where[vm] for vm in goal.vms)
    if goal.shape is Shape.GATHER:
        return len(goal.vms) - max(crowd.values())
    if goal.shape is Shape.SPREAD:
        return len(goal.vms) - len(crowd)
    return sum(count for host, count in crowd.items() if not goal.right(host))
