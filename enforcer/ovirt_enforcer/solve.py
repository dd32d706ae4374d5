"""From a problem to the best known moves: group by group for speed, then as a whole for the proof."""

from __future__ import annotations

from dataclasses import dataclass

from ovirt_enforcer.placement import Placement
from ovirt_enforcer.problem import Move, Problem
from ovirt_enforcer.search import Budget, Found, Goal, Score, search

#: Placements looked at for one group, and for all together: a second or two on a large cluster.
GROUP_BUDGET = 4_000
WHOLE_BUDGET = 20_000


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
    start = Placement(problem)
    goal = Goal(problem, problem.groups)
    at_least = goal.migrations_needed(goal.needs(start))
    best = _one_after_another(goal, start, group_budget)
    perfect = best.score <= goal.best_conceivable(start)
    if perfect and best.migrations == at_least:
        return Solution(best.moves, best.score, proven=True, at_least=at_least)
    known = best.migrations if perfect else None
    found = search(goal, start, Budget(whole_budget), whole=True, below=known)
    if (found.score, found.migrations) < (best.score, best.migrations):
        best = found
    return Solution(best.moves, best.score, found.proven, at_least)


def _one_after_another(goal: Goal, start: Placement, budget: int) -> Found:
    placement = start
    moves: list[Move] = []
    progress = True
    while progress:
        progress = False
        for group in goal.groups:
            if placement.broken(group):
                found = search(Goal(goal.problem, (group,)), placement, Budget(budget), whole=False)
                for move in found.moves:
                    placement = placement.after(move)
                moves.extend(found.moves)
                progress = progress or bool(found.moves)
    return Found(tuple(moves), goal.score(placement), proven=False)
