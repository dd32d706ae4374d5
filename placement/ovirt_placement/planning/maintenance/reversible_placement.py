"""Where VMs are at some point of a plan of maintenance: it goes on by moves, and back to any point before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem


class ReversiblePlacement:
    """A placement that knows who is on each host, and how it came to be so."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.placement = ProblemPlacement(problem)
        self._on: defaultdict[str, set[str]] = defaultdict(set)
        for host, vms in problem.on.items():
            self._on[host].update(vms)
        self._log: list[tuple[Move, tuple[str, ...]]] = []

    def on(self, host: str) -> Collection[str]:
        """VMs that are on a host."""
        return self._on[host]

    @property
    def mark(self) -> int:
        """The point of now, for `back_to` and `since`."""
        return len(self._log)

    def since(self, mark: int) -> tuple[Move, ...]:
        """The moves from a point on."""
        return tuple(move for move, _ in self._log[mark:])

    def move(self, move: Move) -> None:
        """Put VMs on a host."""
        sources = tuple(map(self.placement.where, move.vms))
        self._log.append((move, sources))
        self._put(move, sources)

    def back_to(self, mark: int) -> None:
        """Take back all moves since a point."""
        while len(self._log) > mark:
            move, sources = self._log.pop()
            for vm, source in zip(move.vms, sources, strict=True):
                self._put(Move((vm,), source), (move.host,))

    def _put(self, move: Move, sources: tuple[str, ...]) -> None:
        self.placement.move(move.vms, move.host)
        for vm, source in zip(move.vms, sources, strict=True):
            self._on[source].discard(vm)
            self._on[move.host].add(vm)
