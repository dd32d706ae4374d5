"""Takes some moves back and repairs the same goals in another order: what comes out cheaper is kept."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from ovirt_placement.planning.assignment.assignment import Assignment
from ovirt_placement.planning.assignment.greedy.bound import fixed
from ovirt_placement.planning.assignment.greedy.repairing import Effort, Repairing
from ovirt_placement.planning.assignment.hosts import EmptiestFirst
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.goal import Goal

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
            for vm, host in Repairing(assignment, self._order, goal, _EFFORT).cheapest().items():
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
