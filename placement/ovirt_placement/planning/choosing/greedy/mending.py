"""Mends one goal: tries ways, mends what each of them breaks in turn, and keeps the cheapest that works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ovirt_placement.planning.choosing.draft import Cost, Draft
from ovirt_placement.planning.choosing.greedy.detours import detours
from ovirt_placement.planning.choosing.greedy.ways import Way, Ways
from ovirt_placement.planning.choosing.hosts import EmptiestFirst
from ovirt_placement.planning.problem.goal import Goal


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried for one goal."""

    #: Hosts for each VM.
    width: int
    #: How often what was broken is mended in turn.
    depth: int
    #: Sets of moves in all.
    tries: int


class Mending:
    """The search for the cheapest way to mend one goal. The draft is left as it was found."""

    def __init__(self, draft: Draft, order: EmptiestFirst, goal: Goal, effort: Effort) -> None:
        self._draft = draft
        self._goal = goal
        self._effort = effort
        self._settled: set[str] = set()
        self._ways = Ways(draft, order, effort.width, self._settled)
        self._tries = effort.tries
        self._mark = draft.mark
        self._broken = {one.number for one in draft.standing.broken_goals()}
        self._crowding = dict(draft.crowded)
        self._best: Cost = draft.cost
        self._ideal = _without(self._best, goal)
        self._found: dict[str, str] = {}

    def cheapest(self) -> Mapping[str, str]:
        """VMs that go elsewhere, with their hosts; none where nothing better than the draft was found."""
        self._go_on(self._effort.depth)
        return self._found

    def _go_on(self, depth: int) -> None:
        """Mend the first trouble that there is, in every way, and then what is left of it."""
        trouble = self._troubles()
        if trouble.may_stay:
            self._judge()
        if depth <= 0 or trouble.ways is None:
            return
        for way in trouble.ways:
            if self._tries <= 0:
                return
            self._try(way, depth)

    def _try(self, way: Way, depth: int) -> None:
        self._tries -= 1
        mark = self._draft.mark
        for vm, host in way.items():
            self._draft.move((vm,), host)
        self._settled.update(way)
        if self._worth_it():
            self._go_on(depth - 1)
        self._settled.difference_update(way)
        self._draft.back_to(mark)

    def _worth_it(self) -> bool:
        """Whether it may still be cheaper than what was found, if that mended the goal and broke nothing."""
        return self._best[:-2] > self._ideal[:-2] or self._draft.cost[-2] < self._best[-2]

    def _troubles(self) -> _Trouble:
        """What is to be seen to next: the goal, hosts that are overfull, then what was newly broken."""
        draft, ways = self._draft, self._ways
        if draft.standing.broken(self._goal):
            return _Trouble(False, ways.mending(self._goal))
        for host, missing_mb in draft.overfull.items():
            return _Trouble(False, ways.making_room(host, missing_mb))
        for goal in draft.lost.values():
            return _Trouble(False, ways.mending(goal))
        for goal in self._newly_broken():
            return _Trouble(True, ways.mending(goal))
        for host, now in draft.crowded.items():
            before = self._crowding.get(host, (0, 0))
            if now > before:
                return _Trouble(True, ways.making_room(host, now[0] - before[0], before))
        return _Trouble(True, None)

    def _newly_broken(self) -> Iterator[Goal]:
        """Goals that count and that were not broken before, the most important first."""
        goals = {
            goal.number: goal
            for vm in self._draft.moves_since(self._mark)
            for goal in self._draft.problem.goals_of.get(vm, ())
            if self._draft.standing.broken(goal)
            and goal.number not in self._broken
            and (goal.wanted or goal.held)
        }
        return iter(sorted(goals.values(), key=lambda goal: goal.level))

    def _judge(self) -> None:
        """Keep what is done so far, if nothing found is cheaper."""
        cost = self._draft.cost
        if cost >= self._best or self._draft.lost or self._draft.overfull:
            return
        moves = self._draft.moves_since(self._mark)
        cost = _with_detours(cost, detours(self._draft, self._mark, moves))
        if cost < self._best:
            self._best, self._found = cost, moves


@dataclass(frozen=True, slots=True)
class _Trouble:
    #: Whether the draft is an end even if it stays.
    may_stay: bool
    #: None where there is no trouble.
    ways: Iterator[Way] | None


def _without(cost: Cost, goal: Goal) -> Cost:
    """The same with the goal mended for nothing."""
    place = 2 if goal.hard else 4 + goal.level
    return (*cost[:place], cost[place] - 1, *cost[place + 1 :])


def _with_detours(cost: Cost, moves: int) -> Cost:
    """Moves that are not legal as things stand count double: they need others, or wait for them."""
    *ahead, migrations, memory_mb = cost
    return (*ahead, migrations + moves, memory_mb)
