"""Finds the fewest migrations to an end that straight moves alone do not reach: some VMs must step aside.

A swap goes through a third host, a bystander makes room. The search is best-first (A*) over the hosts of the
VMs concerned: a way is judged by its migrations so far and the VMs that are not yet where they should be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.ordering.direct import closures, straight
from ovirt_placement.planning.ordering.scope import OrderingScope
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.planning.problem.score import score
from ovirt_placement.rules.solving.problem import Budget

#: The hosts of the VMs in scope, in the same order.
State = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A legal way from the placement that the search began with."""

    moves: tuple[Move, ...]
    #: Whether it leads all VMs of the scope to their hosts; else it is the way to the fewest violated rules.
    arrives: bool
    #: Where it arrives: no way is shorter that keeps to the scope. Else: none arrives.
    exhausted: bool


def find_detours(
    placement: ProblemPlacement,
    where: Mapping[str, str],
    scope: OrderingScope,
    deadline: Deadline,
    budget: Budget,
) -> Found:
    """Each look at a placement takes one of `budget`. `placement` is left as it was."""
    return _Search(placement, where, scope).run(deadline, budget)


class _Search:
    def __init__(self, placement: ProblemPlacement, where: Mapping[str, str], scope: OrderingScope) -> None:
        self._placement = placement
        self._where = where
        self._scope = scope
        self._vms = scope.vms
        self._index = {vm: at for at, vm in enumerate(scope.vms)}
        self._elsewhere = {vm: host for vm, host in where.items() if vm not in self._index}
        self._root: State = tuple(map(placement.where, scope.vms))
        self._migrations = {self._root: 0}
        self._came_by: dict[State, tuple[State, Move]] = {}
        self._intended = self._quality_at(tuple(where.get(vm, self._home(vm)) for vm in scope.vms))
        self._place(self._root)

    def run(self, deadline: Deadline, budget: Budget) -> Found:
        """The first look at a placement tries straight moves; the second, one dearer, the others."""
        serial = count()
        away = self._away(self._root)
        open_ends = [(away, away, 0, next(serial), False, self._root)]
        best = ((*score(self._placement)[:4], 0, away), self._root)
        while open_ends and budget.left > 0 and not deadline.over:
            estimate, away, memory_mb, _, again, state = heappop(open_ends)
            if estimate > self._migrations[state] + away + again:
                continue
            budget.spend()
            self._place(state)
            if not again:
                if not away and self._acceptable(state):
                    return self._found(state, arrives=True, exhausted=True)
                if self._placement.violations()[0] <= best[0][0]:
                    merit = (*score(self._placement)[:4], self._migrations[state], away)
                    best = min(best, (merit, state))
                heappush(open_ends, (estimate + 1, away, memory_mb, next(serial), True, state))
            for move in self._others(state) if again else self._straight(state):
                reached = self._after(state, move)
                migrations = self._migrations[state] + len(move.vms)
                if migrations < self._migrations.get(reached, migrations + 1):
                    self._migrations[reached] = migrations
                    self._came_by[reached] = (state, move)
                    left = self._away(reached)
                    moved_mb = memory_mb + sum(self._placement.problem.memory_mb[vm] for vm in move.vms)
                    heappush(open_ends, (migrations + left, left, moved_mb, next(serial), False, reached))
        return self._found(best[1], arrives=False, exhausted=not open_ends)

    def _found(self, state: State, *, arrives: bool, exhausted: bool) -> Found:
        moves: list[Move] = []
        while state != self._root:
            state, move = self._came_by[state]
            moves.append(move)
        self._place(self._root)
        return Found(tuple(reversed(moves)), arrives, exhausted)

    # -- moves

    def _straight(self, state: State) -> Iterator[Move]:
        for vm, host in zip(self._vms, state, strict=True):
            if self._where.get(vm, host) != host:
                move = straight(self._placement, vm, self._where)
                if move is not None and self._index.keys() >= set(move.vms):
                    yield move

    def _others(self, state: State) -> Iterator[Move]:
        groups = closures(self._placement, self._vms)
        for vm, present, first in zip(self._vms, state, self._root, strict=True):
            able = present != first or present in self._scope.leave
            for host in self._scope.hosts[vm] if able else ():
                if host != self._where.get(vm) and self._placement.legal(vm, host):
                    yield Move((vm,), host)
        for vms in groups:
            for host in self._scope.hosts[vms[0]] if self._index.keys() >= set(vms) else ():
                if self._placement.legal_closure(vms, host):
                    yield Move(vms, host)

    def _after(self, state: State, move: Move) -> State:
        moving = {self._index[vm] for vm in move.vms}
        return tuple(move.host if at in moving else host for at, host in enumerate(state))

    # -- placements

    def _place(self, state: State) -> None:
        for vm, host in zip(self._vms, state, strict=True):
            self._placement.move((vm,), host)

    def _home(self, vm: str) -> str:
        return self._placement.problem.where[vm]

    def _away(self, state: State) -> int:
        return sum(self._where.get(vm, host) != host for vm, host in zip(self._vms, state, strict=True))

    def _acceptable(self, state: State) -> bool:
        """Whether VMs that stepped aside may stay there: the end is as good as that which was chosen."""
        strayed = {
            host
            for vm, host in zip(self._vms, state, strict=True)
            if vm not in self._where and host != self._home(vm)
        }
        return not strayed or self._quality_at(state, strayed) <= self._intended

    def _quality_at(
        self, state: State, strayed: frozenset[str] | set[str] = frozenset()
    ) -> tuple[object, ...]:
        """Of the end, once all other VMs are where they should be as well."""
        placement = self._placement
        self._place(state)
        before = {vm: placement.where(vm) for vm in self._elsewhere}
        for vm, host in self._elsewhere.items():
            placement.move((vm,), host)
        lacking = any(placement.free_mb(host) < 0 for host in strayed)
        quality = (lacking, *score(placement)[:4])
        for vm, host in before.items():
            placement.move((vm,), host)
        return quality
