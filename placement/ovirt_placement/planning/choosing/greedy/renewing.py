"""Takes some moves back and mends the same goals in another order: what comes out cheaper is kept."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from ovirt_placement.planning.choosing.draft import Draft
from ovirt_placement.planning.choosing.greedy.bound import fixed
from ovirt_placement.planning.choosing.greedy.mending import Effort, Mending
from ovirt_placement.planning.choosing.hosts import EmptiestFirst
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.goal import Goal

_EFFORT = Effort(width=3, depth=3, tries=40)
#: So many moves are taken back at once at most.
_MOST_MOVES = 12
#: VMs that are looked at for them.
_MOST_SEEN = 100
#: So often without any gain, and so often in all.
_MOST_IDLE = 24
_MOST = 100


class Renewing:
    """Works on a draft in place; it is legal as an end before and after, and never dearer."""

    def __init__(self, draft: Draft, order: EmptiestFirst, deadline: Deadline) -> None:
        self._draft = draft
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
                yield dict(self._draft.standing.moved)
            else:
                idle += 1

    def _seeds(self) -> list[str]:
        """VMs of goals that could be mended and are not, and VMs whose move no broken goal needed."""
        draft, problem = self._draft, self._draft.problem
        moved = draft.standing.moved
        open_goals = (
            goal for goal in draft.standing.broken_goals() if goal.wanted and not fixed(problem, goal)
        )
        touched = {goal.number for vm in moved for goal in problem.goals_of.get(vm, ())}
        needs = {vm for number in touched for vm in self._moved_of_need(problem.goals[number])}
        return list(dict.fromkeys(chain((goal.vms[0] for goal in open_goals), sorted(moved.keys() - needs))))

    def _moved_of_need(self, goal: Goal) -> list[str]:
        """Members that moved, if no fewer would have mended the goal."""
        if goal.held or not goal.wanted or goal.form is None:
            return []
        moved = [vm for vm in goal.vms if vm in self._draft.standing.moved]
        return moved if len(moved) == goal.surplus else []

    def _renew(self, seed: str) -> bool:
        """Whether the draft has become cheaper."""
        draft = self._draft
        cost, mark = draft.cost, draft.mark
        before = dict(draft.standing.moved)
        around = [seed, *self._around(seed)]
        for vm in around:
            draft.move((vm,), draft.problem.where[vm])
        for goal in self._to_mend(around):
            for vm, host in Mending(draft, self._order, goal, _EFFORT).cheapest().items():
                draft.move((vm,), host)
        if draft.cost < cost:
            after = draft.standing.moved
            touched = {vm for vm in before.keys() | after.keys() if before.get(vm) != after.get(vm)}
            homes = draft.problem.where
            self._order.update(
                {host for vm in touched for host in (homes[vm], before.get(vm), after.get(vm)) if host}
            )
            return True
        draft.back_to(mark)
        return False

    def _around(self, seed: str) -> Iterator[str]:
        """Moved VMs near one: tied to it by goals, or on a host with it or with one tied to it."""
        draft, problem = self._draft, self._draft.problem
        seen, waiting, taken = {seed}, [seed], 0
        while waiting and taken < _MOST_MOVES and len(seen) < _MOST_SEEN:
            vm = waiting.pop(0)
            if vm in draft.standing.moved:
                taken += 1
                yield vm
            near = [one for goal in problem.goals_of.get(vm, ()) for one in goal.vms]
            near += [one for host in (problem.where[vm], draft.where(vm)) for one in self._movers(host)]
            for one in self._dice.sample(near, min(len(near), _MOST_MOVES)):
                if one not in seen:
                    seen.add(one)
                    waiting.append(one)

    def _movers(self, host: str) -> list[str]:
        """VMs that moved to a host, or away from it."""
        here = self._draft.arrived(host)
        return [
            *here,
            *(vm for vm in self._draft.problem.on.get(host, ()) if vm in self._draft.standing.moved),
        ]

    def _to_mend(self, vms: Iterable[str]) -> Iterator[Goal]:
        """Goals of these VMs that are broken now and could be mended, by level, at random within each."""
        found = {goal.number: goal for vm in vms for goal in self._draft.problem.goals_of.get(vm, ())}
        goals = [
            goal
            for _, goal in sorted(found.items())
            if (goal.wanted or goal.held)
            and self._draft.standing.broken(goal)
            and not fixed(self._draft.problem, goal)
        ]
        self._dice.shuffle(goals)
        for goal in sorted(goals, key=lambda goal: goal.level):
            if self._draft.standing.broken(goal):
                yield goal
