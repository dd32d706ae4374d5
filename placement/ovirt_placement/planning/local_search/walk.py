"""Legal moves one after another, which can be taken back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.problem.score import score
from ovirt_placement.planning.value import Value, value_of


class Walk:
    """A placement, and the moves that led to it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.placement = ProblemPlacement(problem)
        #: How many moves may still be tried: at 0 none is legal any more.
        self.tries = 0
        self._moves: list[Move] = []
        self._sources: list[tuple[str, ...]] = []

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(self._moves)

    @property
    def value(self) -> Value:
        return (*value_of(score(self.placement))[:-1], sum(len(move.vms) for move in self._moves))

    def go(self, vms: tuple[str, ...], host: str) -> bool:
        """Move VMs at once, if that is legal."""
        move = Move(vms, host)
        self.tries -= 1
        if self.tries < 0 or not self.placement.allows(move):
            return False
        self._take(move)
        return True

    def follow(self, moves: Iterable[Move]) -> None:
        """Take moves that are known to be legal."""
        for move in moves:
            self._take(move)

    # -- taking moves back

    @property
    def mark(self) -> int:
        """A point that `back_to` goes back to."""
        return len(self._moves)

    def back_to(self, mark: int) -> None:
        while len(self._moves) > mark:
            move, sources = self._moves.pop(), self._sources.pop()
            for vm, source in zip(move.vms, sources, strict=True):
                self.placement.move((vm,), source)

    # -- hosts and VMs

    def residents(self, host: str) -> list[str]:
        """VMs on a host that may be migrated."""
        problem, placement = self.problem, self.placement
        here = [vm for vm in problem.on.get(host, ()) if placement.where(vm) == host]
        here += [vm for vm, present in placement.moved.items() if present == host]
        return sorted(vm for vm in here if vm in problem.memory_mb and problem.targets[vm])

    def size_mb(self, vms: Sequence[str]) -> int:
        return sum(self.problem.memory_mb[vm] for vm in vms)

    def _take(self, move: Move) -> None:
        self._sources.append(tuple(self.placement.where(vm) for vm in move.vms))
        self._moves.append(move)
        self.placement.move(move.vms, move.host)
