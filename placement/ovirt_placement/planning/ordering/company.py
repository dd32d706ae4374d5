"""Positive groups: a VM that joins a peer waits until the peer is there, and the peer waits to leave it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ovirt_placement.planning.ordering.trips import Trip
from ovirt_placement.planning.ordering.waiting import Waiting
from ovirt_placement.planning.problem.goal import Shape
from ovirt_placement.planning.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class _Stay:
    """A VM is on a host from the end of one move to the beginning of another, or always."""

    host: str
    since: int | None
    until: int | None


class Company:
    """Who can be relied on to be where."""

    def __init__(self, problem: Problem, travelling: Sequence[Sequence[Trip]]) -> None:
        self._problem = problem
        self._stays: defaultdict[str, list[_Stay]] = defaultdict(list)
        came: dict[str, int] = {}
        for its in travelling:
            for trip in its:
                self._stays[trip.vm].append(_Stay(trip.source, came.get(trip.vm), trip.at))
                came[trip.vm] = trip.at
        for its in travelling:
            for trip in its:
                if came[trip.vm] == trip.at:
                    self._stays[trip.vm].append(_Stay(trip.target, trip.at, None))

    def join(self, its: Sequence[Trip], waiting: Waiting) -> None:
        """Let the move that is looked at wait for a peer, and that peer for it.

        The peer also shows that the group does not stand whole on the host that is left, so that nothing
        that holds is broken. A group that moves at once needs no company.
        """
        if len(its) > 1:
            return
        trip = its[0]
        for peers in (self._problem.peers.get(trip.vm, frozenset()), self._members(trip.vm)):
            stays = [
                stay for peer in sorted(peers) for stay in self._stays_of(peer) if stay.host == trip.target
            ]
            there = [stay for stay in stays if _covers(stay, trip.at)]
            if there:
                best = min(there, key=lambda stay: _cost(stay, trip.at, waiting))
                if best.since is not None:
                    waiting.add(trip.at, best.since)
                if best.until is not None:
                    waiting.add(best.until, trip.at)

    def _members(self, vm: str) -> Iterable[str]:
        """Those that the VM must run with, through others as well."""
        goals = self._problem.goals_of.get(vm, ())
        hard = (goal for goal in goals if goal.hard and goal.shape is Shape.GATHER)
        return {member for goal in hard for member in goal.vms} - {vm}

    def _stays_of(self, vm: str) -> Iterable[_Stay]:
        if vm in self._stays:
            return self._stays[vm]
        hosts = self._problem.pending.get(vm) or (self._problem.where.get(vm),)
        return [_Stay(host, None, None) for host in hosts if host is not None]


def _covers(stay: _Stay, at: int) -> bool:
    return (stay.since is None or stay.since < at) and (stay.until is None or stay.until > at)


def _cost(stay: _Stay, at: int, waiting: Waiting) -> tuple[bool, int, bool]:
    """Whether it must be waited for, for how long, and whether the peer must wait in turn."""
    waited = stay.since is not None and not waiting.has_ended(stay.since, at)
    return waited, waiting.end(stay.since) if waited and stay.since is not None else 0, stay.until is not None
