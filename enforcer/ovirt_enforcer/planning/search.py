"""Finds the shortest sequence of legal moves that mends groups: best-first, exact until its work budget ends.

A legal move never breaks a group that holds and never adds a collision to a negative one (the filters see to
that), so whatever is found at any moment is at least as good as the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from heapq import heappop, heappush

from ovirt_enforcer.planning.candidates import in_the_way, moves_of, on_nearest_hosts
from ovirt_enforcer.planning.goal import Goal, Score
from ovirt_enforcer.planning.problem import Move
from ovirt_enforcer.planning.standing import Moved, Placement


@dataclass(slots=True)
class Budget:
    """Placements that may still be looked at: a measure of work that is the same on every machine."""

    left: int

    def spend(self) -> bool:
        self.left -= 1
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class Found:
    """The best that a search came to."""

    moves: tuple[Move, ...]
    score: Score
    #: Nothing better, and nothing as good with fewer migrations, exists.
    proven: bool

    @property
    def migrations(self) -> int:
        return sum(len(move.vms) for move in self.moves)


class Manner(Enum):
    """Which VMs may make room for others, and what is tried first."""

    #: Every movable VM; the shortest plans first. Exact if the budget lasts.
    EXACT = auto()
    #: Only VMs that are in the way; the shortest plans first.
    CLOSE = auto()
    #: Only VMs on the hosts that lack least; what is nearest to the goal first, however long the way to it.
    HASTY = auto()


@dataclass(frozen=True, slots=True, order=True)
class _Node:
    """A placement in the queue, the most promising first."""

    rank: tuple[int, int, int]
    #: A lower bound of the length of any plan that leads over it.
    estimate: int = field(compare=False)
    needed: int = field(compare=False)
    migrations: int = field(compare=False)
    moved: Moved = field(compare=False)
    #: First the members of broken groups move; a turn later all that might make room for them.
    make_room: bool = field(compare=False)


def search(
    goal: Goal, start: Placement, budget: Budget, manner: Manner, *, below: int | None = None
) -> Found:
    """Search from `start` towards the best conceivable score.

    `below` is the length of a perfect plan that is known already: only a shorter one is of interest.
    """
    return _Search(goal, start, budget, manner).run(below)


class _Search:
    """The queue of one search and how each placement in it was reached."""

    def __init__(self, goal: Goal, start: Placement, budget: Budget, manner: Manner) -> None:
        self._goal = goal
        self._budget = budget
        self._manner = manner
        self._perfect = goal.best_conceivable(start)
        self._best = (goal.score(start), 0, start.moved)
        self._reached: dict[Moved, tuple[int, Moved, Move | None]] = {start.moved: (0, start.moved, None)}
        self._queue: list[_Node] = []
        self._order = 0
        self._push(start, start.moved, 0, goal.migrations_needed(goal.needs(start)))

    def run(self, below: int | None) -> Found:
        exhausted = False
        while self._queue and not exhausted:
            node = heappop(self._queue)
            if below is not None and node.estimate >= below:
                break
            if self._reached[node.moved][0] < node.migrations:
                continue
            placement = Placement(self._goal.problem, node.moved)
            score = self._goal.score(placement)
            self._best = min(self._best, (score, node.migrations, node.moved))
            if score <= self._perfect:
                break
            exhausted = not self._expand(node, placement)
        score, _, moved = self._best
        return Found(self._path(moved), score, self._manner is Manner.EXACT and not exhausted)

    def _expand(self, node: _Node, placement: Placement) -> bool:
        """Queue what can be reached in one move; False when the budget ends."""
        if not node.make_room:
            # A VM that is in no broken group mends nothing itself: such moves cost one more in any case.
            self._push(placement, node.moved, node.migrations, node.needed, make_room=True)
        needs = self._goal.needs(placement)
        movers = self._makers_of_room(placement) if node.make_room else self._goal.members(placement)
        for move in moves_of(movers, self._goal.problem, placement):
            if not self._budget.spend():
                return False
            after = placement.after(move)
            migrations = node.migrations + len(move.vms)
            known = self._reached.get(after.moved)
            if known is None or migrations < known[0]:
                self._reached[after.moved] = (migrations, node.moved, move)
                needed = self._goal.migrations_needed(self._goal.needs(after, needs, move.vms))
                self._push(after, after.moved, migrations, needed)
        return True

    def _makers_of_room(self, placement: Placement) -> set[str]:
        """VMs outside of broken groups whose leaving may help."""
        if self._manner is Manner.EXACT:
            found = set(self._goal.problem.movable)
        elif self._manner is Manner.CLOSE:
            found = in_the_way(self._goal.problem, placement, self._goal.members(placement))
        else:
            found = on_nearest_hosts(self._goal, placement)
        return found - self._goal.members(placement)

    def _push(
        self, placement: Placement, moved: Moved, migrations: int, needed: int, *, make_room: bool = False
    ) -> None:
        self._order += 1
        estimate = migrations + needed + make_room
        if self._manner is Manner.HASTY:
            rank = (needed, self._goal.missing_mb(placement), self._order)
        else:
            rank = (estimate, needed, self._order)
        heappush(self._queue, _Node(rank, estimate, needed, migrations, moved, make_room))

    def _path(self, moved: Moved) -> tuple[Move, ...]:
        moves: list[Move] = []
        _, before, move = self._reached[moved]
        while move is not None:
            moves.append(move)
            _, before, move = self._reached[before]
        return tuple(reversed(moves))
