"""Goes through all that legal sequences reach, the shortest first; stops where nothing better can come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.exhaustive.moves import Moves
from ovirt_placement.planning.exhaustive.space import Numbers, Space
from ovirt_placement.planning.exhaustive.values import Value, Values
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.problem.score import score

#: A problem with more placements is not searched; one with rules that only their constraints know, far fewer.
_MOST_STATES = 4_000_000
_MOST_STATES_ASKED_ONE_BY_ONE = 20_000
#: States that are looked at together.
_AT_ONCE = 200_000
#: Ends that are compared by how full they leave their targets.
_MOST_ENDS = 500
_NEVER = np.iinfo(np.int16).max


def shortest(problem: Problem, bound: Sequence[int], deadline: Deadline) -> tuple[Move, ...] | None:
    """The fewest migrations to the best that any legal sequence reaches; None if that is too much to know.

    `bound` is what no end can beat: hard, crowding, soft by level. Reaching it ends the search.
    """
    space = Space(problem, CandidateHosts(problem, other=True))
    at_once = any(goal.binding and goal.gathers for goal in problem.goals)
    other = any(goal.collective or (goal.lenient and at_once) for goal in problem.goals)
    if space.size > (_MOST_STATES_ASKED_ONE_BY_ONE if other else _MOST_STATES):
        return None
    return _Search(space, tuple(bound)).run(deadline) if Values(space).fit else None


class _Search:
    """Layers of placements by the number of migrations that reach them."""

    def __init__(self, space: Space, bound: Value) -> None:
        self._space = space
        self._problem = space.problem
        self._moves = Moves(space)
        self._values = Values(space)
        self._bound = self._values.joined(bound)
        self._steps = np.full(space.size, _NEVER, dtype=np.int16)
        #: The placement before, and the move that led from it.
        self._before = np.zeros(space.size, dtype=np.int64)
        self._by = np.zeros(space.size, dtype=np.int32)
        self._known: list[Move] = []
        self._best = np.iinfo(np.int64).max
        self._ends: list[Numbers] = []

    def run(self, deadline: Deadline) -> tuple[Move, ...] | None:
        layers: defaultdict[int, list[Numbers]] = defaultdict(list)
        layers[0].append(np.zeros(1, dtype=np.int64))
        self._steps[0] = 0
        while layers:
            steps = min(layers)
            reached = np.unique(np.concatenate(layers.pop(steps)))
            reached = reached[self._steps[reached] == steps]
            chunks = [reached[at : at + _AT_ONCE] for at in range(0, len(reached), _AT_ONCE)]
            for states in chunks:
                self._judge(states)
            if self._best <= self._bound:
                break
            for states in chunks:
                if deadline.over:
                    return None
                for cost, fresh in self._expand(states, steps):
                    layers[steps + cost].append(fresh)
        return self._path(self._end())

    def _judge(self, states: Numbers) -> None:
        """Keep those that are the best so far; of such as need more steps none."""
        values = self._values.of(states)
        least = int(values.min())
        if least < self._best:
            self._best, self._ends = least, [states[values == least]]
        elif least == self._best and self._steps[states[0]] == self._steps[self._ends[0][0]]:
            self._ends.append(states[values == least])

    def _expand(self, states: Numbers, steps: int) -> Iterator[tuple[int, Numbers]]:
        for move, before, after in self._moves.after(states):
            cost = len(move.vms)
            shorter = self._steps[after] > steps + cost
            if shorter.any():
                fresh = after[shorter]
                self._steps[fresh] = steps + cost
                self._before[fresh] = before[shorter]
                self._by[fresh] = len(self._known)
                self._known.append(move)
                yield cost, fresh

    def _end(self) -> int:
        """Of ends that are equal in all that is proven: the least memory, then the fullest target."""
        ends = np.concatenate(self._ends)
        memory = self._values.memory_mb(ends)
        lightest = ends[memory == memory.min()][:_MOST_ENDS]
        return min((int(end) for end in lightest), key=lambda end: (self._fullest(end), end))

    def _fullest(self, end: int) -> int:
        placement = ProblemPlacement(self._problem)
        for vm, host in self._space.where(end).items():
            placement.move((vm,), host)
        return score(placement).fullest

    def _path(self, state: int) -> tuple[Move, ...]:
        moves: list[Move] = []
        while state:
            moves.append(self._known[self._by[state]])
            state = int(self._before[state])
        return tuple(reversed(moves))
