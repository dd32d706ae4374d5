"""The strategy `greedy`: mends goal by goal, what matters most first; then tries it with fewer moves."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from ovirt_placement.planning.choosing.choice import MOST_OTHERS, Choice
from ovirt_placement.planning.choosing.draft import Draft
from ovirt_placement.planning.choosing.greedy.bound import bound, fixed
from ovirt_placement.planning.choosing.greedy.mending import Effort, Mending
from ovirt_placement.planning.choosing.greedy.parting import part
from ovirt_placement.planning.choosing.greedy.renewing import Renewing
from ovirt_placement.planning.choosing.hosts import EmptiestFirst
from ovirt_placement.planning.choosing.spread import spread
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.problem.score import score
from ovirt_placement.planning.problem.standing import Standing

#: What is tried for every goal, and then for those that this does not mend.
_QUICK = Effort(width=2, depth=2, tries=12)
_PATIENT = Effort(width=4, depth=4, tries=150)
#: The share of the time that is left for mending; the rest is for doing the same with fewer moves.
_MENDING_SHARE = 0.7


class Greedy:
    """The same problem has the same choice, unless the deadline cuts it short."""

    name = "greedy"
    goes_on = True

    def choose(self, problem: Problem, deadline: Deadline) -> Choice:
        draft = Draft(problem)
        order = EmptiestFirst(draft)
        mended_one_by_one = _mended_one_by_one(draft, order, deadline.within(_MENDING_SHARE))
        ends = chain(({},), mended_one_by_one, Renewing(draft, order, deadline).run())
        *others, best = deque(ends, maxlen=MOST_OTHERS + 1)
        where = spread(problem, best)
        standing = Standing(problem)
        for vm, host in where.items():
            standing.move((vm,), host)
        return Choice(where, score(standing), bound(problem), others=tuple(reversed(others)))


def _mended_one_by_one(draft: Draft, order: EmptiestFirst, deadline: Deadline) -> Iterator[Mapping[str, str]]:
    """The ends on the way to all that can be mended so: VMs that are elsewhere than at the start."""
    for effort in (_QUICK, _PATIENT):
        for goal in by_importance(draft.standing.broken_goals()):
            if deadline.over:
                break
            mark = draft.mark
            mend(draft, order, goal, effort)
            if draft.mark > mark:
                yield dict(draft.standing.moved)
    mark = draft.mark
    for goal in draft.standing.broken_goals():
        if not deadline.over:
            part(draft, order, goal)
    if draft.mark > mark:
        yield dict(draft.standing.moved)


def mended(standing: Standing, goals: Iterable[Goal]) -> Mapping[str, str]:
    """VMs that go elsewhere from this standing, with their hosts: for these goals, quickly."""
    draft = Draft(standing.problem)
    for vm, host in standing.moved.items():
        draft.move((vm,), host)
    mark, order = draft.mark, EmptiestFirst(draft)
    for goal in by_importance(goals):
        mend(draft, order, goal, _QUICK)
        part(draft, order, goal)
    return draft.moves_since(mark)


def mend(draft: Draft, order: EmptiestFirst, goal: Goal, effort: Effort) -> None:
    """Take the cheapest way to mend a goal, if it is still broken and that makes things better."""
    if not goal.wanted or not draft.standing.broken(goal) or fixed(draft.problem, goal):
        return
    way = Mending(draft, order, goal, effort).cheapest()
    left = {draft.where(vm) for vm in way}
    for vm, host in way.items():
        draft.move((vm,), host)
    order.update(left.union(way.values()))


def by_importance(goals: Iterable[Goal]) -> list[Goal]:
    """Wanted goals: the more important level first, then those with fewer VMs."""
    return sorted((goal for goal in goals if goal.wanted), key=lambda goal: (goal.level, len(goal.vms)))
