"""Memory that moves pass on to each other: who takes what is free, and who must wait for whom to leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ovirt_placement.planning.ordering.trips import Trip
from ovirt_placement.planning.ordering.waiting import Waiting


@dataclass(slots=True)
class _Share:
    """What a move leaves behind on a host once it has ended, in MiB that nobody has claimed yet."""

    left_by: int
    free_mb: int


class Room:
    """Every MiB is claimed by one arrival at a time, so that all arrivals that wait for no more may begin."""

    def __init__(self, free_mb: Mapping[str, int]) -> None:
        #: Unclaimed from the start on; below 0 where a host has handed out more than it has.
        self._free_mb = dict(free_mb)
        self._shares: dict[str, list[_Share]] = {}
        #: Moves whose room fills up what a host lacks: no arrival may do without them.
        self._owed: dict[str, set[int]] = {}

    def enter(self, its: Sequence[Trip], memory_mb: Mapping[str, int], waiting: Waiting) -> None:
        """Claim room for all VMs of the move that is looked at, and leave behind what they had."""
        at, target = its[0].at, its[0].target
        self._pay(at, target, waiting)
        self._claim(at, target, sum(memory_mb[trip.vm] for trip in its), waiting)
        for trip in its:
            self._shares.setdefault(trip.source, []).append(_Share(at, memory_mb[trip.vm]))

    def _pay(self, at: int, host: str, waiting: Waiting) -> None:
        debt_mb = -self._free_mb[host]
        if debt_mb > 0:
            self._free_mb[host] = 0
            self._owed[host] = {share.left_by for share in self._lacking(host, debt_mb, waiting)}
            for share in self._shares.get(host, ()):
                debt_mb -= _taken(share, debt_mb) if share.left_by in self._owed[host] else 0
        for before in self._owed.get(host, ()):
            waiting.add(at, before)

    def _claim(self, at: int, host: str, needed_mb: int, waiting: Waiting) -> None:
        """What others left comes first, as far as it is there anyway: others may not be sure of it."""
        needed_mb -= self._take_left(at, host, needed_mb, waiting)
        for share in self._lacking(host, needed_mb - self._free_mb[host], waiting):
            waiting.add(at, share.left_by)
        needed_mb -= self._take_left(at, host, needed_mb, waiting)
        self._free_mb[host] -= needed_mb

    def _take_left(self, at: int, host: str, needed_mb: int, waiting: Waiting) -> int:
        """Claim what moves that have ended for certain left behind, and say how much that is."""
        taken_mb = 0
        for share in self._shares.get(host, ()):
            if waiting.has_ended(share.left_by, at):
                taken_mb += _taken(share, needed_mb - taken_mb)
        return taken_mb

    def _lacking(self, host: str, needed_mb: int, waiting: Waiting) -> list[_Share]:
        """What must be waited for: of what is left behind soonest, as few shares as will do."""
        chosen: list[_Share] = []
        left = [share for share in self._shares.get(host, ()) if share.free_mb]
        offered = _soonest(left, needed_mb, waiting)
        while needed_mb > 0:
            enough = [share for share in offered if share.free_mb >= needed_mb]
            best = min(enough or offered, key=lambda share: share.free_mb if enough else -share.free_mb)
            needed_mb -= best.free_mb
            offered.remove(best)
            chosen.append(best)
        return chosen


def _soonest(shares: Iterable[_Share], needed_mb: int, waiting: Waiting) -> list[_Share]:
    """No more of the shares than suffice, and of these those that are there first."""
    chosen: list[_Share] = []
    for share in sorted(shares, key=lambda share: (waiting.end(share.left_by), share.left_by)):
        if needed_mb <= 0:
            break
        chosen.append(share)
        needed_mb -= share.free_mb
    return chosen


def _taken(share: _Share, needed_mb: int) -> int:
    taken = min(share.free_mb, needed_mb)
    share.free_mb -= taken
    return taken
