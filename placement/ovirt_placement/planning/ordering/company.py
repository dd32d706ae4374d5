"""Positive groups: a VM that joins a peer waits until the peer is there, and the peer waits to leave it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ovirt_placement.planning.ordering.trips import Trip
from ovirt_placement.planning.ordering.waiting import Waiting
from ovirt_placement.planning.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class _Stay:
    """A VM is on a host from the end of one move to the beginning of another, or always."""

    since: int | None
    until: int | None


class Company:
    """Who can be relied on to be where."""

    def __init__(self, problem: Problem, travelling: Sequence[Sequence[Trip]]) -> None:
        self._problem = problem
        #: By host, VMs that are there for a while: first those that never leave.
        self._stays: defaultdict[str, list[tuple[str, _Stay]]] = defaultdict(list)
        came: dict[str, int] = {}
        passing: list[tuple[str, str, _Stay]] = []
        for its in travelling:
            for trip in its:
                passing.append((trip.source, trip.vm, _Stay(came.get(trip.vm), trip.at)))
                came[trip.vm] = trip.at
        for vm, host in problem.where.items():
            for there in problem.pending.get(vm) or (host,) if vm not in came else ():
                self._stays[there].append((vm, _Stay(None, None)))
        for its in travelling:
            for trip in its:
                if came[trip.vm] == trip.at:
                    passing.append((trip.target, trip.vm, _Stay(trip.at, None)))
        for host, vm, stay in sorted(passing, key=lambda one: one[1]):
            self._stays[host].append((vm, stay))

    def join(self, its: Sequence[Trip], waiting: Waiting) -> None:
        """Let the move that is looked at wait for a peer, and that peer for it.

        The peer also shows that the group does not stand whole on the host that is left, so that nothing
        that holds is violated. A group that moves as a whole has no peers besides it.
        """
        at, target = its[0].at, its[0].target
        moving = {trip.vm for trip in its}
        direct = (self._problem.peers.get(vm, frozenset()) for vm in moving)
        for peers in (frozenset().union(*direct), self._members(its[0].vm)):
            best = self._best(at, target, peers - moving, waiting)
            if best is not None and best.since is not None:
                waiting.add(at, best.since)
            if best is not None and best.until is not None:
                waiting.add(best.until, at)

    def _best(self, at: int, host: str, peers: frozenset[str], waiting: Waiting) -> _Stay | None:
        """Of the peers on a host when a move begins that which is to be waited for least."""
        found: tuple[tuple[bool, int, bool], _Stay] | None = None
        for vm, stay in self._stays[host] if peers else ():
            if vm in peers and _covers(stay, at):
                if stay.since is None and stay.until is None:
                    return stay
                cost = _cost(stay, at, waiting)
                if found is None or cost < found[0]:
                    found = cost, stay
        return None if found is None else found[1]

    def _members(self, vm: str) -> frozenset[str]:
        """Those that the VM must run with, through others as well."""
        goals = self._problem.goals_of.get(vm, ())
        hard = (goal for goal in goals if goal.hard and goal.gathers)
        return frozenset(member for goal in hard for member in goal.vms)


def _covers(stay: _Stay, at: int) -> bool:
    return (stay.since is None or stay.since < at) and (stay.until is None or stay.until > at)


def _cost(stay: _Stay, at: int, waiting: Waiting) -> tuple[bool, int, bool]:
    """Whether it must be waited for, for how long, and whether the peer must wait in turn."""
    waited = stay.since is not None and not waiting.has_ended(stay.since, at)
    return waited, waiting.end(stay.since) if waited and stay.since is not None else 0, stay.until is not None
