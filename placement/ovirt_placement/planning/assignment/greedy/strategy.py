"""The strategy `greedy`: repairs goal by goal, what matters most first; then tries it with fewer moves."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from ovirt_placement.planning.assignment.assignment import Assignment
from ovirt_placement.planning.assignment.choice import MOST_OTHERS, Strategy, StrategyChoice
from ovirt_placement.planning.assignment.greedy.repairing import Effort, Repairing
from ovirt_placement.planning.assignment.hosts import EmptiestFirst, best_hosts
from ovirt_placement.planning.assignment.spread import spread
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.lower_bound import bound, fixed
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.problem.score import score

_EFFORT = Effort(width=3, depth=3, tries=40)
#: This many moves are taken back at once at most.
_MOST_MOVES = 12
#: VMs that are looked at for them.
_MOST_SEEN = 100
#: So often without any gain, and so often in all.
_MOST_IDLE = 24
_MOST = 100


class Renewing:
    """Works on a draft in place; it is legal as an end before and after, and never dearer."""

    def __init__(self, assignment: Assignment, order: EmptiestFirst, deadline: Deadline) -> None:
        self._assignment = assignment
        self._order = order
        self._deadline = deadline
        # Not for secrets: the same problem is to have the same choice.
        self._dice = random.Random(1)  # noqa: S311

    def run(self) -> Iterator[Mapping[str, str]]:
        """Each end that is cheaper than the one before: VMs that are elsewhere than at the start."""
        idle = 0
        for _ in range(_MOST):
            seeds = self._seeds()
            if not seeds or idle >= min(_MOST_IDLE, 8 * len(seeds)) or self._deadline.over:
                break
            if self._renew(self._dice.choice(seeds)):
                idle = 0
                yield dict(self._assignment.placement.moved)
            else:
                idle += 1

    def _seeds(self) -> list[str]:
        """VMs of goals that could be repaired and are not, and VMs whose move no violated goal needed."""
        assignment, problem = self._assignment, self._assignment.problem
        moved = assignment.placement.moved
        open_goals = (
            goal for goal in assignment.placement.violated_goals() if goal.wanted and not fixed(problem, goal)
        )
        touched = {goal.number for vm in moved for goal in problem.goals_of.get(vm, ())}
        needs = {vm for number in touched for vm in self._moved_of_need(problem.goals[number])}
        return list(dict.fromkeys(chain((goal.vms[0] for goal in open_goals), sorted(moved.keys() - needs))))

    def _moved_of_need(self, goal: Goal) -> list[str]:
        """Members that moved, if no fewer would have repaired the goal."""
        if goal.satisfied or not goal.wanted or goal.form is None:
            return []
        moved = [vm for vm in goal.vms if vm in self._assignment.placement.moved]
        return moved if len(moved) == goal.surplus else []

    def _renew(self, seed: str) -> bool:
        """Whether the draft has become cheaper."""
        assignment = self._assignment
        cost, mark = assignment.cost, assignment.mark
        before = dict(assignment.placement.moved)
        around = [seed, *self._around(seed)]
        for vm in around:
            assignment.move((vm,), assignment.problem.where[vm])
        for goal in self._to_repair(around):
            for vm, host in (
                Repairing(assignment, self._order, goal, _EFFORT, self._deadline).cheapest().items()
            ):
                assignment.move((vm,), host)
        if assignment.cost < cost:
            after = assignment.placement.moved
            touched = {vm for vm in before.keys() | after.keys() if before.get(vm) != after.get(vm)}
            homes = assignment.problem.where
            self._order.update(
                {host for vm in touched for host in (homes[vm], before.get(vm), after.get(vm)) if host}
            )
            return True
        assignment.back_to(mark)
        return False

    def _around(self, seed: str) -> Iterator[str]:
        """Moved VMs near one: tied to it by goals, or on a host with it or with one tied to it."""
        assignment, problem = self._assignment, self._assignment.problem
        seen, waiting, taken = {seed}, [seed], 0
        while waiting and taken < _MOST_MOVES and len(seen) < _MOST_SEEN:
            vm = waiting.pop(0)
            if vm in assignment.placement.moved:
                taken += 1
                yield vm
            near = [one for goal in problem.goals_of.get(vm, ()) for one in goal.vms]
            near += [one for host in (problem.where[vm], assignment.where(vm)) for one in self._movers(host)]
            for one in self._dice.sample(near, min(len(near), _MOST_MOVES)):
                if one not in seen:
                    seen.add(one)
                    waiting.append(one)

    def _movers(self, host: str) -> list[str]:
        """VMs that moved to a host, or away from it."""
        here = self._assignment.arrived(host)
        return [
            *here,
            *(
                vm
                for vm in self._assignment.problem.on.get(host, ())
                if vm in self._assignment.placement.moved
            ),
        ]

    def _to_repair(self, vms: Iterable[str]) -> Iterator[Goal]:
        """Goals of these VMs that are violated now and could be repaired, by level, at random within each."""
        found = {goal.number: goal for vm in vms for goal in self._assignment.problem.goals_of.get(vm, ())}
        goals = [
            goal
            for _, goal in sorted(found.items())
            if (goal.wanted or goal.satisfied)
            and self._assignment.placement.violated(goal)
            and not fixed(self._assignment.problem, goal)
        ]
        self._dice.shuffle(goals)
        for goal in sorted(goals, key=lambda goal: goal.level):
            if self._assignment.placement.violated(goal):
                yield goal


#: Hosts that each VM is offered, and VMs in a row that find none before the group is left as it is.
_WIDTH = 3
_MOST_IN_VAIN = 20


def part(assignment: Assignment, order: EmptiestFirst, goal: Goal) -> None:
    """One VM after another goes, as long as that counts and costs nothing that matters more."""
    while goal.partly and assignment.placement.violated(goal) and _one_leaves(assignment, order, goal):
        pass


def _one_leaves(assignment: Assignment, order: EmptiestFirst, goal: Goal) -> bool:
    crowd = assignment.placement.crowd(goal)
    if not set(assignment.problem.hosts).difference(crowd):
        return False
    return any(_leaves(assignment, order, goal, vm) for vm in _leaving(assignment, goal)[:_MOST_IN_VAIN])


def _leaving(assignment: Assignment, goal: Goal) -> list[str]:
    """Those that share a host and may go: from the largest crowd, and the smallest VMs first."""
    crowd = assignment.placement.crowd(goal)
    able = (vm for vm in goal.vms if crowd[assignment.where(vm)] > 1 and assignment.problem.targets[vm])
    return sorted(able, key=lambda vm: (-crowd[assignment.where(vm)], assignment.problem.memory_mb[vm], vm))


def _leaves(assignment: Assignment, order: EmptiestFirst, goal: Goal, vm: str) -> bool:
    block, cost, mark = assignment.block(vm), assignment.cost, assignment.mark
    if len(set(block).intersection(goal.vms)) > 1:
        return False
    for host in best_hosts(assignment, order, block, _WIDTH, but=assignment.placement.crowd(goal)):
        source = assignment.where(vm)
        assignment.move(block, host)
        if assignment.cost < cost:
            order.update((source, host))
            return True
        assignment.back_to(mark)
    return False


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
    other: Strategy | None = None

    def choose(self, problem: Problem, deadline: Deadline) -> StrategyChoice:
        assignment = Assignment(problem)
        order = EmptiestFirst(assignment)
        repaired_one_by_one = _repaired_one_by_one(assignment, order, deadline.within(_REPAIRING_SHARE))
        ends = chain(({},), repaired_one_by_one, Renewing(assignment, order, deadline).run())
        *others, best = deque(ends, maxlen=MOST_OTHERS + 1)
        where = spread(problem, best, deadline)
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
            repair(assignment, order, goal, effort, deadline)
            if assignment.mark > mark:
                yield dict(assignment.placement.moved)
    mark = assignment.mark
    for goal in assignment.placement.violated_goals():
        if not deadline.over:
            part(assignment, order, goal)
    if assignment.mark > mark:
        yield dict(assignment.placement.moved)


def repair(
    assignment: Assignment, order: EmptiestFirst, goal: Goal, effort: Effort, deadline: Deadline
) -> None:
    """Take the cheapest way to repair a goal, if it is still violated and that makes things better."""
    if not goal.wanted or not assignment.placement.violated(goal) or fixed(assignment.problem, goal):
        return
    way = Repairing(assignment, order, goal, effort, deadline).cheapest()
    left = {assignment.where(vm) for vm in way}
    for vm, host in way.items():
        assignment.move((vm,), host)
    order.update(left.union(way.values()))


def by_importance(goals: Iterable[Goal]) -> list[Goal]:
    """Wanted goals: the more important level first, then those with fewer VMs."""
    return sorted((goal for goal in goals if goal.wanted), key=lambda goal: (goal.level, len(goal.vms)))
