"""One restart after the other from another point: the best is kept, as long as time and patience last."""

from __future__ import annotations

import random
from itertools import count

from ovirt_placement.planning.assignment.greedy.bound import fixed
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.local_search.repairing import repaired
from ovirt_placement.planning.local_search.shortening import shortened
from ovirt_placement.planning.local_search.walk import Walk
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.value import Value, value

#: Rounds without any gain after which it is given up; in large clusters, where each takes longer, fewer.
_PATIENCE = 40
_LEAST_PATIENCE = 5
_PATIENT_UP_TO_VMS = 250
#: Migrations that are tried for one rule, and by chance before a round.
_FOR_A_RULE = 400
_SHAKES = 40
#: Rules with more VMs are left as they are.
_MOST_VMS = 60


def improved(problem: Problem, moves: tuple[Move, ...], bound: Value, deadline: Deadline) -> tuple[Move, ...]:
    """Moves that leave less violated than those given, or these; no end is better than `bound`."""
    best, worth = moves, value(problem, moves)
    nowhere = not problem.hosts
    if nowhere or worth[:-1] <= bound[:-1] or not _open_goals(_begun(problem, best, 0).placement):
        return moves
    patience = _patience(len(problem.where))
    idle = 0
    for number in count():
        if worth <= bound or idle == patience or deadline.over:
            break
        walk = _begun(problem, best, number)
        if not _round(walk, random.Random(number), deadline):  # noqa: S311 - dice, not secrets
            idle += 1
            continue
        tried = walk.moves
        if walk.value[:-1] <= worth[:-1]:
            tried = shortened(problem, tried, deadline)
        idle = 0 if value(problem, tried) < worth else idle + 1
        best, worth = min((best, worth), (tried, value(problem, tried)), key=lambda one: one[1])
    return best


def _patience(vms: int) -> int:
    return max(_LEAST_PATIENCE, _PATIENCE * _PATIENT_UP_TO_VMS // max(_PATIENT_UP_TO_VMS, vms))


def _begun(problem: Problem, best: tuple[Move, ...], number: int) -> Walk:
    """Of three rounds one continues from the best, one restarts from a perturbed best, one from the start."""
    walk = Walk(problem)
    if number % 3 < 2:
        walk.follow(best)
    if number % 3 == 1:
        _shake(walk, random.Random(number))  # noqa: S311 - dice, not secrets
    return walk


def _shake(walk: Walk, dice: random.Random) -> None:
    """Some VMs go elsewhere, for no reason but that it might help."""
    vms = sorted(walk.problem.memory_mb)
    walk.tries = _SHAKES
    for vm in dice.sample(vms, min(len(vms), _SHAKES)):
        walk.go(walk.placement.closure(vm), dice.choice(walk.problem.hosts))


def _round(walk: Walk, dice: random.Random, deadline: Deadline) -> bool:
    """Whether any rule was repaired."""
    any_repaired = False
    left = _by_lot(walk, dice)
    while left and not deadline.over:
        repaired_now = [goal for goal in left if _repaired(walk, goal, dice, deadline)]
        any_repaired = any_repaired or bool(repaired_now)
        left = _by_lot(walk, dice) if repaired_now else []
    return any_repaired


def _repaired(walk: Walk, goal: Goal, dice: random.Random, deadline: Deadline) -> bool:
    if deadline.over or not walk.placement.violated(goal):
        return False
    walk.tries = _FOR_A_RULE
    return repaired(walk, goal, dice)


def _by_lot(walk: Walk, dice: random.Random) -> list[Goal]:
    """The more important level first."""
    goals = _open_goals(walk.placement)
    dice.shuffle(goals)
    return sorted(goals, key=lambda goal: goal.level)


def _open_goals(placement: ProblemPlacement) -> list[Goal]:
    """Violated rules that some end could repair, as far as can be seen, and that are not too large to try."""
    return [
        goal
        for goal in placement.violated_goals()
        if (goal.wanted or goal.satisfied)
        and len(goal.vms) <= _MOST_VMS
        and not fixed(placement.problem, goal)
    ]
