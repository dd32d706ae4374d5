"""Empties hosts into others, as few VMs as possible into such that are still to be emptied themselves."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from ovirt_placement.planning.maintenance.reversible_placement import ReversiblePlacement
from ovirt_placement.planning.problem.problem import Move


class Fit(Enum):
    """Which host takes a VM, of those that may."""

    #: The one with the most free memory by then.
    SPREAD = auto()
    #: Hosts are filled one after the other, the one with the most free memory at first before the others.
    FILL = auto()
    #: The one that is left with the least.
    SNUG = auto()


class Shifted(NamedTuple):
    """What came of it; the moves are in the placement."""

    #: VMs that found no host.
    left: tuple[str, ...]
    #: How many went to hosts of the second choice.
    again: int


#: The ways that are tried, one after the other, until one leaves nothing to wish for: which host, and whether
#: large VMs come before small ones.
_Way = tuple[Fit, bool]
_WAYS: tuple[_Way, ...] = (
    (Fit.SPREAD, True),
    (Fit.FILL, True),
    (Fit.SNUG, True),
    (Fit.SPREAD, False),
    (Fit.SNUG, False),
)


def shift(
    reached: ReversiblePlacement, hosts: Iterable[str], first: Collection[str], second: Collection[str]
) -> Shifted:
    """Empty hosts into those of the `first` choice, and what these do not take into those of the `second`.

    VMs that may not move at all are not looked at. Of several ways the one counts that leaves the fewest,
    then sends the fewest to hosts of the second choice.
    """
    problem = reached.problem
    movable = sorted(vm for host in hosts for vm in reached.on(host) if problem.targets[vm])
    mark = reached.mark
    tried: list[tuple[tuple[int, int], _Way]] = []
    for way in _WAYS:
        found = _one_way(reached, movable, (first, second), way)
        if not found.left and not found.again:
            return found
        reached.back_to(mark)
        tried.append(((len(found.left), found.again), way))
    _, best = min(tried, key=lambda one: one[0])
    return _one_way(reached, movable, (first, second), best)


def _one_way(
    reached: ReversiblePlacement, movable: list[str], choices: tuple[Collection[str], ...], way: _Way
) -> Shifted:
    fit, large_first = way
    size = reached.problem.memory_mb
    left = sorted(movable, key=lambda vm: (-size[vm] if large_first else size[vm], vm))
    again = 0
    for number, hosts in enumerate(choices):
        rooms = _Rooms(reached, hosts, fit)
        before = None
        while left and before != len(left):
            before = len(left)
            left, moved = _pass(reached, left, rooms)
            again += moved if number else 0
    return Shifted(tuple(left), again)


def _pass(reached: ReversiblePlacement, vms: list[str], rooms: _Rooms) -> tuple[list[str], int]:
    """Try each once; those that are left, and how many moved."""
    left, gone = [], set[str]()
    for vm in vms:
        if vm in gone:
            continue
        move = rooms.move_for(vm)
        if move is None:
            left.append(vm)
        else:
            rooms.take(move)
            gone.update(move.vms)
    return [vm for vm in left if vm not in gone], len(gone)


class _Rooms:
    """Hosts of one choice by what they have free."""

    def __init__(self, reached: ReversiblePlacement, hosts: Collection[str], fit: Fit) -> None:
        self._reached = reached
        self._fit = fit
        free = reached.placement.free_mb
        self._by_room = sorted((free(host), host) for host in hosts)
        self._at_first = [host for _, host in reversed(self._by_room)]
        self._known = {host: mb for mb, host in self._by_room}

    def move_for(self, vm: str) -> Move | None:
        """Where a VM goes, alone or with all that the engine takes along."""
        placement, problem = self._reached.placement, self._reached.problem
        closure = placement.closure(vm)
        if len(closure) > 1:
            needed = sum(problem.memory_mb[one] for one in closure)
            for host in self._candidates(vm, needed):
                if placement.legal_closure(closure, host):
                    return Move(closure, host)
        for host in self._candidates(vm, problem.memory_mb[vm]):
            if placement.legal(vm, host):
                return Move((vm,), host)
        return None

    def take(self, move: Move) -> None:
        sources = {self._reached.placement.where(vm) for vm in move.vms}
        self._reached.move(move)
        for host in {*sources, move.host} & self._known.keys():
            self._by_room.pop(bisect_left(self._by_room, (self._known[host], host)))
            self._known[host] = self._reached.placement.free_mb(host)
            insort(self._by_room, (self._known[host], host))

    def _candidates(self, vm: str, needed_mb: int) -> Iterator[str]:
        """Hosts that have enough memory, the best first."""
        targets = self._reached.problem.targets[vm]
        if len(targets) * 4 < len(self._by_room):
            few = sorted((self._known[host], host) for host in targets if host in self._known)
            ordered = [(mb, host) for mb, host in few if mb >= needed_mb]
        elif self._fit is Fit.FILL:
            yield from (host for host in self._at_first if self._known[host] >= needed_mb)
            return
        else:
            ordered = self._by_room[bisect_left(self._by_room, (needed_mb, "")) :]
        yield from (host for _, host in (ordered if self._fit is Fit.SNUG else reversed(ordered)))
