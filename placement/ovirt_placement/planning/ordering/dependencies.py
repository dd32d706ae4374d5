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
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.rules.forms import AtMost


def waits(problem: Problem, moves: Sequence[Move]) -> tuple[tuple[int, ...], ...]:
    """Of each move the places of those that it waits for; those that these wait for are left out.

    `moves` are legal one by one in this sequence.
    """
    travelling = trips(problem, moves)
    waiting = Waiting([sum(problem.memory_mb[vm] for vm in move.vms) for move in moves])
    for needed in (
        _own(travelling),
        _closed(problem, travelling),
        _rivals(problem, travelling),
        _summed(problem, travelling),
    ):
        for after, before in needed:
            waiting.add(after, before)
    for after, before in _untold(problem, travelling):
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


def _closed(problem: Problem, travelling: Sequence[tuple[Trip, ...]]) -> Iterator[tuple[int, int]]:
    """The engine takes all along that run on the host that a closure leaves: nobody comes or goes then."""
    goals = {goal.number: goal for its in travelling for goal in _gathering(problem, its)}
    for number in sorted(goals):
        members = frozenset(goals[number].vms)
        mine = [its for its in travelling if its[0].vm in members]
        for place, its in enumerate(mine):
            for earlier in mine[:place]:
                if _meets(its, earlier) or _meets(earlier, its):
                    yield its[0].at, earlier[0].at


def _gathering(problem: Problem, its: tuple[Trip, ...]) -> Iterator[Goal]:
    """The group that a closure is of."""
    goals = _binding(problem, its[0].vm) if len(its) > 1 else iter(())
    return (goal for goal in goals if goal.gathers)


def _meets(closure: tuple[Trip, ...], other: tuple[Trip, ...]) -> bool:
    """Whether a move brings VMs to the host that a closure leaves, or takes some away."""
    source = closure[0].source
    return len(closure) > 1 and any(source in (trip.source, trip.target) for trip in other)


def _rivals(problem: Problem, travelling: Sequence[tuple[Trip, ...]]) -> Iterator[tuple[int, int]]:
    """A VM arrives where members of a limited group were only when these have left."""
    left: dict[tuple[int, str], list[Trip]] = {}
    for its in travelling:
        for trip in its:
            for goal, limit in _limited(problem, trip.vm):
                for earlier in left.get((goal.number, limit.place(trip.target)), ()):
                    if limit.own_set(earlier.vm) != limit.own_set(trip.vm):
                        yield trip.at, earlier.at
        for trip in its:
            for goal, limit in _limited(problem, trip.vm):
                left.setdefault((goal.number, limit.place(trip.source)), []).append(trip)


def _summed(problem: Problem, travelling: Sequence[tuple[Trip, ...]]) -> Iterator[tuple[int, int]]:
    """A VM comes to the hosts of a sum when all have left them that do so before it."""
    left: dict[int, list[int]] = {}
    for its in travelling:
        sums = {
            goal.number: goal.sum
            for trip in its
            for goal in problem.goals_between(trip.vm, trip.source, trip.target)
            if goal.binding and goal.sum is not None
        }
        for number, total in sums.items():
            if its[0].target in total.hosts:
                yield from ((its[0].at, earlier) for earlier in left.get(number, ()))
            else:
                left.setdefault(number, []).append(its[0].at)


def _limited(problem: Problem, vm: str) -> Iterator[tuple[Goal, AtMost]]:
    return ((goal, goal.limit) for goal in _binding(problem, vm) if goal.limit is not None)


def _untold(problem: Problem, travelling: Sequence[tuple[Trip, ...]]) -> Iterator[tuple[int, int]]:
    """What a rule without a form lets pass, or one that is violated, was tried in this sequence alone."""
    last: dict[int, int] = {}
    for its in travelling:
        for trip in its:
            for goal in _binding(problem, trip.vm):
                if goal.sum is None and (goal.collective or goal.lenient):
                    if last.get(goal.number, trip.at) != trip.at:
                        yield trip.at, last[goal.number]
                    last[goal.number] = trip.at


def _binding(problem: Problem, vm: str) -> Iterator[Goal]:
    return (goal for goal in problem.goals_of.get(vm, ()) if goal.binding)
