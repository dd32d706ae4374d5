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
from ovirt_enforcer.planning.posed import Move
from ovirt_enforcer.planning.standing import Moved, Standing
from ovirt_placement.rules.solving.budget import Budget, BudgetSpentError


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
    """A standing in the queue, the most promising first."""

    rank: tuple[int, int, int]
    #: A lower bound of the length of any plan that leads over it.
    estimate: int = field(compare=False)
    needed: int = field(compare=False)
    migrations: int = field(compare=False)
    moved: Moved = field(compare=False)
    #: First the members of broken groups move; a turn later all that might make room for them.
    make_room: bool = field(compare=False)


def search(goal: Goal, start: Standing, budget: Budget, manner: Manner, *, below: int | None = None) -> Found:
    """Search from `start` towards the best conceivable score; each standing looked at is a step.

    `below` is the length of a perfect plan that is known already: only a shorter one is of interest.
    """
    return _Search(goal, start, budget, manner).run(below)


class _Search:
    """The queue of one search and how each standing in it was reached."""

    def __init__(self, goal: Goal, start: Standing, budget: Budget, manner: Manner) -> None:
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
        try:
            self._visit(below)
            finished = True
        except BudgetSpentError:
            finished = False
        score, _, moved = self._best
        return Found(self._path(moved), score, self._manner is Manner.EXACT and finished)

    def _visit(self, below: int | None) -> None:
        """Go through the queue until it, or what is of interest, ends. Raises `BudgetSpentError`."""
        while self._queue:
            node = heappop(self._queue)
            if below is not None and node.estimate >= below:
                break
            if self._reached[node.moved][0] < node.migrations:
                continue
            standing = Standing(self._goal.problem, node.moved)
            score = self._goal.score(standing)
            self._best = min(self._best, (score, node.migrations, node.moved))
            if score <= self._perfect:
                break
            self._expand(node, standing)

    def _expand(self, node: _Node, standing: Standing) -> None:
        """Queue what can be reached in one move."""
        if not node.make_room:
            # A VM that is in no broken group mends nothing itself: such moves cost one more in any case.
            self._push(standing, node.moved, node.migrations, node.needed, make_room=True)
        needs = self._goal.needs(standing)
        movers = self._makers_of_room(standing) if node.make_room else self._goal.members(standing)
        for move in moves_of(movers, self._goal.problem, standing):
            self._budget.spend()
            after = standing.after(move)
            migrations = node.migrations + len(move.vms)
            known = self._reached.get(after.moved)
            if known is None or migrations < known[0]:
                self._reached[after.moved] = (migrations, node.moved, move)
                needed = self._goal.migrations_needed(self._goal.needs(after, needs, move.vms))
                self._push(after, after.moved, migrations, needed)

    def _makers_of_room(self, standing: Standing) -> set[str]:
        """VMs outside of broken groups whose leaving may help."""
        if self._manner is Manner.EXACT:
            found = set(self._goal.problem.movable)
        elif self._manner is Manner.CLOSE:
            found = in_the_way(self._goal.problem, standing, self._goal.members(standing))
        else:
            found = on_nearest_hosts(self._goal, standing)
        return found - self._goal.members(standing)

    def _push(
        self, standing: Standing, moved: Moved, migrations: int, needed: int, *, make_room: bool = False
    ) -> None:
        self._order += 1
        estimate = migrations + needed + make_room
        if self._manner is Manner.HASTY:
            rank = (needed, self._goal.missing_mb(standing), self._order)
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
