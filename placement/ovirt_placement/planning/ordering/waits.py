"""Which moves of a legal sequence wait for which, so that all others may run at once.

Every interleaving that keeps to the waits is legal, with any number of migrations running. Until a migration
has ended it holds memory on both hosts, counts on both for VMs that must be apart, and counts where it goes
for VMs that must be together, but nobody relies on it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ovirt_placement.planning.ordering.company import Company
from ovirt_placement.planning.ordering.room import Room
from ovirt_placement.planning.ordering.trips import Trip, trips
from ovirt_placement.planning.ordering.waiting import Waiting
from ovirt_placement.planning.problem.goal import Goal, Shape
from ovirt_placement.planning.problem.problem import Move, Problem


def waits(problem: Problem, moves: Sequence[Move]) -> tuple[tuple[int, ...], ...]:
    """Of each move the places of those that it waits for; those that these wait for are left out.

    `moves` are legal one by one in this sequence.
    """
    travelling = trips(problem, moves)
    waiting = Waiting([sum(problem.memory_mb[vm] for vm in move.vms) for move in moves])
    for after, before in (*_own(travelling), *_rivals(problem, travelling), *_untold(problem, travelling)):
        waiting.add(after, before)
    company, room = Company(problem, travelling), Room(problem.free_mb)
    for its in travelling:
        waiting.look_at_next()
        company.join(its, waiting)
        room.enter(its, problem.memory_mb, waiting)
    return waiting.reduced()


def _own(travelling: Sequence[tuple[Trip, ...]]) -> Iterator[tuple[int, int]]:
    """A VM is migrated once at a time."""
    last: dict[str, int] = {}
    for its in travelling:
        for trip in its:
            if trip.vm in last:
                yield trip.at, last[trip.vm]
            last[trip.vm] = trip.at


def _rivals(problem: Problem, travelling: Sequence[tuple[Trip, ...]]) -> Iterator[tuple[int, int]]:
    """A VM arrives where a rival was only when that has left."""
    left: dict[tuple[int, str], list[Trip]] = {}
    for its in travelling:
        for trip in its:
            for goal in _hard(problem, trip.vm, Shape.SPREAD):
                for earlier in left.get((goal.number, trip.target), ()):
                    if earlier.vm != trip.vm:
                        yield trip.at, earlier.at
        for trip in its:
            for goal in _hard(problem, trip.vm, Shape.SPREAD):
                left.setdefault((goal.number, trip.source), []).append(trip)


def _untold(problem: Problem, travelling: Sequence[tuple[Trip, ...]]) -> Iterator[tuple[int, int]]:
    """What a rule asks that only it can tell was tried in this sequence alone."""
    last: dict[int, int] = {}
    for its in travelling:
        for trip in its:
            for goal in _hard(problem, trip.vm, Shape.OTHER):
                if last.get(goal.number, trip.at) != trip.at:
                    yield trip.at, last[goal.number]
                last[goal.number] = trip.at


def _hard(problem: Problem, vm: str, shape: Shape) -> Iterator[Goal]:
    return (goal for goal in problem.goals_of.get(vm, ()) if goal.hard and goal.shape is shape)
