"""From a problem to the best known moves: group by group for speed, then as a whole for the proof."""

from __future__ import annotations

from dataclasses import dataclass

from ovirt_enforcer.planning.goal import Goal, Score
from ovirt_enforcer.planning.posed import Move, Problem
from ovirt_enforcer.planning.search import Found, Manner, search
from ovirt_enforcer.planning.standing import Standing
from ovirt_placement.rules.solving.budget import Budget

#: Standings looked at for one group, and for all together: seconds on a large cluster where all is broken.
GROUP_BUDGET = 2_000
WHOLE_BUDGET = 10_000
_PASSES = 3


@dataclass(frozen=True, slots=True)
class Solution:
    """Moves in order, with what is known about their number."""

    moves: tuple[Move, ...]
    score: Score
    #: No plan mends more, and none as much with fewer migrations.
    proven: bool
    #: Migrations that any plan needs that mends all that can be mended.
    at_least: int


def solve(problem: Problem, group_budget: int = GROUP_BUDGET, whole_budget: int = WHOLE_BUDGET) -> Solution:
    """The fewest migrations to the fewest broken groups, exact as long as the budgets last.

    Mending one group after another takes a search each and is good even where the whole is too large to
    search. When its length equals the lower bound it is optimal; otherwise the whole is searched.
    """
    start = Standing(problem)
    goal = Goal(problem, problem.groups)
    at_least = goal.migrations_needed(goal.needs(start))
    best = _one_after_another(goal, start, group_budget)
    perfect = best.score <= goal.best_conceivable(start)
    if perfect and best.migrations == at_least:
        return Solution(best.moves, best.score, proven=True, at_least=at_least)
    known = best.migrations if perfect else None
    found = search(goal, start, Budget(whole_budget), Manner.EXACT, below=known)
    if (found.score, found.migrations) < (best.score, best.migrations):
        best = found
    return Solution(best.moves, best.score, found.proven, at_least)


def _one_after_another(goal: Goal, start: Standing, budget: int) -> Found:
    """Mend each group by itself, and try again those that failed once others are out of the way."""
    standing = start
    moves: list[Move] = []
    for _ in range(_PASSES):
        progress = False
        for group in goal.groups:
            if standing.broken(group):
                found = _mend(Goal(goal.problem, (group,)), standing, budget)
                for move in found.moves:
                    standing = standing.after(move)
                moves.extend(found.moves)
                progress = progress or bool(found.moves)
        if not progress:
            break
    return Found(tuple(moves), goal.score(standing), proven=False)


def _mend(goal: Goal, standing: Standing, budget: int) -> Found:
    """The shortest way, or, where the budget does not suffice to find one, any."""
    found = search(goal, standing, Budget(budget), Manner.CLOSE)
    if found.score > goal.best_conceivable(standing):
        hasty = search(goal, standing, Budget(2 * budget), Manner.HASTY)
        if hasty.score < found.score:
            return hasty
    return found
