"""The strategy `greedy`: repairs goal by goal, what matters most first; then tries it with fewer moves."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from ovirt_placement.planning.assignment.assignment import Assignment
from ovirt_placement.planning.assignment.choice import MOST_OTHERS, StrategyChoice
from ovirt_placement.planning.assignment.greedy.anti_affinity_moves import part
from ovirt_placement.planning.assignment.greedy.bound import bound, fixed
from ovirt_placement.planning.assignment.greedy.renewing import Renewing
from ovirt_placement.planning.assignment.greedy.repairing import Effort, Repairing
from ovirt_placement.planning.assignment.hosts import EmptiestFirst
from ovirt_placement.planning.assignment.spread import spread
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.problem.score import score

#: What is tried for every goal, and then for those that this does not repair.
_QUICK = Effort(width=2, depth=2, tries=12)
_PATIENT = Effort(width=4, depth=4, tries=150)
#: The share of the time that is left for repairing; the rest is for doing the same with fewer moves.
_REPAIRING_SHARE = 0.7


class Greedy:
    """The same problem has the same choice, unless the deadline cuts it short."""

    name = "greedy"
    goes_on = True
    seed: int | None = None

    def choose(self, problem: Problem, deadline: Deadline) -> StrategyChoice:
        assignment = Assignment(problem)
        order = EmptiestFirst(assignment)
        repaired_one_by_one = _repaired_one_by_one(assignment, order, deadline.within(_REPAIRING_SHARE))
        ends = chain(({},), repaired_one_by_one, Renewing(assignment, order, deadline).run())
        *others, best = deque(ends, maxlen=MOST_OTHERS + 1)
        where = spread(problem, best)
        placement = ProblemPlacement(problem)
        for vm, host in where.items():
            placement.move((vm,), host)
        return StrategyChoice(where, score(placement), bound(problem), others=tuple(reversed(others)))


def _repaired_one_by_one(
    assignment: Assignment, order: EmptiestFirst, deadline: Deadline
) -> Iterator[Mapping[str, str]]:
    """The ends on the way to all that can be repaired so: VMs that are elsewhere than at the start."""
    for effort in (_QUICK, _PATIENT):
        for goal in by_importance(assignment.placement.violated_goals()):
            if deadline.over:
                break
            mark = assignment.mark
            repair(assignment, order, goal, effort)
            if assignment.mark > mark:
                yield dict(assignment.placement.moved)
    mark = assignment.mark
    for goal in assignment.placement.violated_goals():
        if not deadline.over:
            part(assignment, order, goal)
    if assignment.mark > mark:
        yield dict(assignment.placement.moved)


def repaired(placement: ProblemPlacement, goals: Iterable[Goal]) -> Mapping[str, str]:
    """VMs that go elsewhere from this placement, with their hosts: for these goals, quickly."""
    assignment = Assignment(placement.problem)
    for vm, host in placement.moved.items():
        assignment.move((vm,), host)
    mark, order = assignment.mark, EmptiestFirst(assignment)
    for goal in by_importance(goals):
        repair(assignment, order, goal, _QUICK)
        part(assignment, order, goal)
    return assignment.moves_since(mark)


def repair(assignment: Assignment, order: EmptiestFirst, goal: Goal, effort: Effort) -> None:
    """Take the cheapest way to repair a goal, if it is still violated and that makes things better."""
    if not goal.wanted or not assignment.placement.violated(goal) or fixed(assignment.problem, goal):
        return
    way = Repairing(assignment, order, goal, effort).cheapest()
    left = {assignment.where(vm) for vm in way}
    for vm, host in way.items():
        assignment.move((vm,), host)
    order.update(left.union(way.values()))


def by_importance(goals: Iterable[Goal]) -> list[Goal]:
    """Wanted goals: the more important level first, then those with fewer VMs."""
    return sorted((goal for goal in goals if goal.wanted), key=lambda goal: (goal.level, len(goal.vms)))
