"""What any end violates and moves at least: goals that fixed VMs violate, and goals without a common VM."""

from __future__ import annotations

from ovirt_placement.planning.encode.counts import count
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.problem.score import Score


def bound(problem: Problem) -> Score:
    """A score that no end is better than; seldom one that can be reached."""
    violated = [goal for goal in problem.goals if goal.wanted and not goal.satisfied]
    violations = [0] * problem.levels
    taken: set[str] = set()
    migrations = memory_mb = 0
    for goal in violated:
        if fixed(problem, goal):
            violations[goal.level] += 1
        elif goal.form is not None and taken.isdisjoint(goal.vms):
            taken.update(goal.vms)
            count = goal.surplus
            migrations += count
            memory_mb += sum(sorted(problem.memory_mb[vm] for vm in goal.vms)[:count])
    hard, *soft = violations
    return Score(hard, 0, 0, tuple(soft), 0, migrations, memory_mb, 0)


def fixed(problem: Problem, goal: Goal) -> bool:
    """Whether VMs that cannot move to where it wants them, or too few hosts, break it in every end."""
    if goal.allowed is not None:
        return any(
            not goal.right(problem.where[vm]) and not any(map(goal.right, problem.targets[vm]))
            for vm in goal.vms
        )
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
