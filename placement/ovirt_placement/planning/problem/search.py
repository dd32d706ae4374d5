"""Best-first search: the cheapest way to each state; and with it the best plan of small problems."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from heapq import heappop, heappush
from itertools import count
from math import prod
from typing import Any, Generic, TypeVar

from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.problem.score import score, value_of

State = TypeVar("State", bound=Hashable)
Edge = TypeVar("Edge")
#: Numbers of which the first that differ decide.
Cost = tuple[int, ...]
Rank = tuple[Any, ...]


class BestFirst(Generic[State, Edge]):
    """States that were reached. With ranks that no way beats (A*) the first that is an end is a cheapest one.

    What is an end, which edges lead on from a state and when the search is given up is the caller's matter.
    """

    def __init__(self, start: State, rank: Rank = (), cost: Cost = (0,)) -> None:
        self._cost = {start: cost}
        self._before: dict[State, tuple[State, Edge]] = {}
        self._serial = count()
        self._open: list[tuple[Rank, int, Cost, State]] = [(rank, next(self._serial), cost, start)]
        #: How many states were looked at.
        self.seen = 0
        #: Of the state that was taken last.
        self.rank = rank

    def take_next(self) -> State | None:
        """The state with the least rank that is still to be looked at, if any is."""
        while self._open:
            self.rank, _, cost, state = heappop(self._open)
            if cost == self._cost[state]:
                self.seen += 1
                return state
        return None

    @property
    def exhausted(self) -> bool:
        """Whether no state is left."""
        return not self._open

    def cost(self, state: State) -> Cost:
        """What the cheapest way that is known to a state costs."""
        return self._cost[state]

    def cheaper(self, state: State, cost: Cost) -> bool:
        """Whether no way to a state is known that costs as little."""
        known = self._cost.get(state)
        return known is None or cost < known

    def add(self, before: State, edge: Edge, state: State, cost: Cost, rank: Rank) -> None:
        """A state can be reached from another, by an edge that makes it cheaper than is known."""
        self._cost[state] = cost
        self._before[state] = before, edge
        heappush(self._open, (rank, next(self._serial), cost, state))

    def steps_to(self, state: State) -> list[Edge]:
        """From the start to a state."""
        found = []
        while state in self._before:
            state, edge = self._before[state]
            found.append(edge)
        return found[::-1]


#: VMs that are elsewhere than at the start, with their hosts.
Places = frozenset[tuple[str, str]]


def put_at(placement: ProblemPlacement, places: Places) -> None:
    """Bring a placement there, from wherever it is."""
    placement.put({vm: placement.problem.where[vm] for vm in placement.moved} | dict(places))


def places_after(problem: Problem, places: Places, move: Move) -> Places:
    """Where VMs are once a move is made, too."""
    others = {place for place in places if place[0] not in move.vms}
    return frozenset(others.union((vm, move.host) for vm in move.vms if problem.where[vm] != move.host))


def closures(placement: ProblemPlacement, vms: Iterable[str]) -> list[tuple[str, ...]]:
    """What of these VMs can only move at once, or may, each closure once."""
    found = dict.fromkeys(placement.closure(vm) for vm in vms)
    return [closure for closure in found if len(closure) > 1]


def legal_moves(placement: ProblemPlacement, vms: Collection[str], hosts: Collection[str]) -> list[Move]:
    """All legal moves of VMs to hosts: of each alone, and of what may move at once."""
    groups = [*((vm,) for vm in vms), *closures(placement, vms)]
    return [move for group in groups for host in hosts if placement.allows(move := Move(group, host))]


#: A problem with more placements is not begun with; and placements that are looked at, a millisecond each.
_MOST_PLACEMENTS = 100_000
_MOST_SEEN = 5_000


def shortest(problem: Problem, bound: Sequence[int], deadline: Deadline) -> tuple[Move, ...] | None:
    """The fewest migrations to the best that any legal sequence reaches; None if that is too much to know.

    `bound` is what no end can beat: hard, crowding, soft by level. Reaching it ends the search. Of ends that
    are as good the one with the least memory that moves counts, then that with the emptiest fullest target.
    """
    candidates = CandidateHosts(problem, other=True)
    vms = sorted(vm for vm in problem.memory_mb if len(candidates.hosts_of(vm)) > 1)
    if prod(len(candidates.hosts_of(vm)) for vm in vms) > _MOST_PLACEMENTS:
        return None
    placement = ProblemPlacement(problem)
    search: BestFirst[Places, Move] = BestFirst(frozenset())
    best = None
    while (state := search.take_next()) is not None:
        (migrations,) = search.cost(state)
        if best is not None and best[0] <= tuple(bound) and migrations > best[1]:
            break
        if search.seen > _MOST_SEEN or deadline.over:
            return None
        put_at(placement, state)
        ended = score(placement)
        tried = value_of(ended)[:-1], migrations, ended.memory_mb, ended.fullest, search.seen, state
        best = tried if best is None else min(best, tried)
        for move in legal_moves(placement, vms, problem.hosts):
            after, cost = places_after(problem, state, move), (migrations + len(move.vms),)
            if search.cheaper(after, cost):
                search.add(state, move, after, cost, cost)
    return None if best is None else tuple(search.steps_to(best[-1]))
