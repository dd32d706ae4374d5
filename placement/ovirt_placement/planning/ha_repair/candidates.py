"""Which legal moves may help highly available VMs to survive what they do not survive now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.ordering.direct import closures
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.rules.failover.outcomes import Loss

#: A cluster with no more of these is searched as a whole.
_FEW_VMS: Final = 12
_FEW_HOSTS: Final = 6
#: In larger ones: failures that are looked at, VMs that are to start in each, hosts that could be homes of
#: these, the smallest and largest VMs that may leave each host, and hosts that these may go to.
_LOSSES: Final = 2
_STARTING: Final = 8
_HOMES: Final = 6
_LEAVING: Final = 3
_TARGETS: Final = 4


class Candidates:
    """Moves that are legal in a placement."""

    def __init__(self, snapshot: Snapshot, placement: ProblemPlacement) -> None:
        self._snapshot = snapshot
        self._placement = placement
        problem = placement.problem
        #: Whether all legal moves are among them.
        self.all = len(problem.hosts) <= _FEW_HOSTS and len(problem.memory_mb) <= _FEW_VMS

    def moves(self, losses: Sequence[Loss]) -> Iterator[Move]:
        """The most promising first, each once."""
        found = self._every() if self.all else self._helpful(losses)
        return iter(dict.fromkeys(found))

    def _every(self) -> Iterator[Move]:
        for vm in sorted(self._placement.problem.memory_mb):
            yield from self._to(vm, self._placement.problem.hosts)

    def _helpful(self, losses: Sequence[Loss]) -> Iterator[Move]:
        """For the failures with the most VMs without a home.

        Room is found for them where VMs that need no start make room, best on the very hosts that fail. What
        is to start may as well leave these hosts before.
        """
        placement = self._placement
        by_room = sorted(placement.problem.hosts, key=lambda host: -placement.free_mb(host))
        for loss in sorted(losses, key=lambda loss: -len(loss.unplaced))[:_LOSSES]:
            failing = [host for host in by_room if host in loss.hosts]
            others = [host for host in by_room if host not in loss.hosts]
            for host in others[:_HOMES]:
                for vm in self._leaving(host, ha=False):
                    yield from self._to(vm, failing, _TARGETS)
            starting = (vm for host in failing for vm in self._on(host, ha=True))
            for vm in islice(dict.fromkeys((*loss.unplaced, *starting)), _STARTING):
                yield from self._to(vm, others, _TARGETS)
            for host in others[:_HOMES]:
                for ha in (False, True):
                    for vm in self._leaving(host, ha=ha):
                        yield from self._to(vm, others, _TARGETS)

    def _leaving(self, host: str, *, ha: bool) -> list[str]:
        """The smallest and the largest of the VMs there that are highly available, or are not."""
        by_size = sorted(self._on(host, ha=ha), key=lambda vm: (self._placement.problem.memory_mb[vm], vm))
        return list(dict.fromkeys((*by_size[-_LEAVING:], *by_size[:_LEAVING])))

    def _on(self, host: str, *, ha: bool) -> Iterator[str]:
        placement, problem = self._placement, self._placement.problem
        there = {*problem.on.get(host, ()), *(vm for vm, now in placement.moved.items() if now == host)}
        for vm in sorted(there):
            known = self._snapshot.vm_by_id[vm]
            if vm in problem.memory_mb and placement.where(vm) == host and known.ha is ha:
                yield vm

    def _to(self, vm: str, hosts: Iterable[str], most: int | None = None) -> Iterator[Move]:
        placement = self._placement
        yield from islice((Move((vm,), host) for host in hosts if placement.legal(vm, host)), most)
        for vms in closures(placement, (vm,)):
            whole = (Move(vms, host) for host in hosts if placement.legal_closure(vms, host))
            yield from islice(whole, most)
