"""Repairs one goal: tries ways, repairs what each of them violates in turn, and keeps the cheapest one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ovirt_placement.planning.assignment.assignment import Assignment, Cost
from ovirt_placement.planning.assignment.greedy.ways import Way, Ways
from ovirt_placement.planning.assignment.hosts import EmptiestFirst
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.goal import Goal


def detours(assignment: Assignment, mark: int, moves: Mapping[str, str]) -> int:
    """How many of the moves no plain order makes legal, from how things stood at the mark."""
    with assignment.as_at(mark):
        waiting = dict(moves)
        progress = True
        while waiting and progress:
            progress = False
            for vm, host in moves.items():
                if vm in waiting and (going := _goes(assignment, vm, host, waiting)):
                    assignment.move(going, host)
                    for one in going:
                        del waiting[one]
                    progress = True
    return len(waiting)


def _goes(assignment: Assignment, vm: str, host: str, waiting: Mapping[str, str]) -> tuple[str, ...]:
    """The VMs that may go to the host with this one now: none, it alone, or its closure."""
    if assignment.placement.legal(vm, host):
        return (vm,)
    vms = assignment.placement.closure(vm)
    bound = len(vms) > 1 and all(waiting.get(one) == host for one in vms)
    return vms if bound and assignment.placement.legal_closure(vms, host) else ()


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried for one goal."""

    #: Hosts for each VM.
    width: int
    #: How often what was violated is repaired in turn.
    depth: int
    #: Sets of moves in all.
    tries: int


class Repairing:
    """The search for the cheapest way to repair one goal. The draft is left as it was found."""

    def __init__(
        self,
        assignment: Assignment,
        order: EmptiestFirst,
        goal: Goal,
        effort: Effort,
        deadline: Deadline,
    ) -> None:
        self._assignment = assignment
        self._goal = goal
        self._deadline = deadline
        self._effort = effort
        self._settled: set[str] = set()
        self._ways = Ways(assignment, order, effort.width, self._settled)
        self._tries = effort.tries
        self._mark = assignment.mark
        self._violated = {one.number for one in assignment.placement.violated_goals()}
        self._headroom_deficit = dict(assignment.crowded)
        self._best: Cost = assignment.cost
        self._ideal = _without(self._best, goal)
        self._found: dict[str, str] = {}

    def cheapest(self) -> Mapping[str, str]:
        """VMs that go elsewhere, with their hosts; none where nothing better than the draft was found."""
        self._go_on(self._effort.depth)
        return self._found

    def _go_on(self, depth: int) -> None:
        """Repair the first trouble that there is, in every way, and then what is left of it."""
        trouble = self._troubles()
        if trouble.may_stay:
            self._judge()
        if depth <= 0 or trouble.ways is None:
            return
        for way in trouble.ways:
            if self._tries <= 0 or self._deadline.over:
                return
            self._try(way, depth)

    def _try(self, way: Way, depth: int) -> None:
        self._tries -= 1
        mark = self._assignment.mark
        for vm, host in way.items():
            self._assignment.move((vm,), host)
        self._settled.update(way)
        if self._worth_it():
            self._go_on(depth - 1)
        self._settled.difference_update(way)
        self._assignment.back_to(mark)

    def _worth_it(self) -> bool:
        """Whether it may still be cheaper than the best, if that repaired the goal and broke nothing."""
        return self._best[:-2] > self._ideal[:-2] or self._assignment.cost[-2] < self._best[-2]

    def _troubles(self) -> _Trouble:
        """What to repair next: the goal, hosts that are overfull, then what was newly violated."""
        assignment, ways = self._assignment, self._ways
        if assignment.placement.violated(self._goal):
            return _Trouble(False, ways.repairing(self._goal))
        for host, missing_mb in assignment.overfull.items():
            return _Trouble(False, ways.making_room(host, missing_mb))
        for goal in assignment.lost.values():
            return _Trouble(False, ways.repairing(goal))
        for goal in self._newly_violated():
            return _Trouble(True, ways.repairing(goal))
        for host, now in assignment.crowded.items():
            before = self._headroom_deficit.get(host, (0, 0))
            if now > before:
                return _Trouble(True, ways.making_room(host, now[0] - before[0], before))
        return _Trouble(True, None)

    def _newly_violated(self) -> Iterator[Goal]:
        """Goals that count and that were not violated before, the most important first."""
        goals = {
            goal.number: goal
            for vm in self._assignment.moves_since(self._mark)
            for goal in self._assignment.problem.goals_of.get(vm, ())
            if self._assignment.placement.violated(goal)
            and goal.number not in self._violated
            and (goal.wanted or goal.satisfied)
        }
        return iter(sorted(goals.values(), key=lambda goal: goal.level))

    def _judge(self) -> None:
        """Keep what is done so far, if nothing found is cheaper."""
        cost = self._assignment.cost
        if cost >= self._best or self._assignment.lost or self._assignment.overfull:
            return
        moves = self._assignment.moves_since(self._mark)
        cost = _with_detours(cost, detours(self._assignment, self._mark, moves))
        if cost < self._best:
            self._best, self._found = cost, moves


@dataclass(frozen=True, slots=True)
class _Trouble:
    #: Whether the draft is an end even if it stays.
    may_stay: bool
    #: None where there is no trouble.
    ways: Iterator[Way] | None


def _without(cost: Cost, goal: Goal) -> Cost:
    """The same with the goal repaired for nothing."""
    place = 2 if goal.hard else 4 + goal.level
    return (*cost[:place], cost[place] - 1, *cost[place + 1 :])


def _with_detours(cost: Cost, moves: int) -> Cost:
    """Moves that are not legal as things stand count double: they need others, or wait for them."""
    *ahead, migrations, memory_mb = cost
    return (*ahead, migrations + moves, memory_mb)
