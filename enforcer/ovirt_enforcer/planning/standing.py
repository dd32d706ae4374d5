"""Where the VMs of a problem are after some moves, and what is legal and what is broken there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from ovirt_enforcer.planning.problem import Apart, Group, Move, Problem, Together

#: VMs that are elsewhere than at the start, with their hosts, sorted: equal placements have equal values.
Moved = tuple[tuple[str, str], ...]


class Placement:
    """The problem after some moves; answers what is legal and what is broken there."""

    __slots__ = ("_free_mb", "_moved", "_problem")

    def __init__(self, problem: Problem, moved: Moved = ()) -> None:
        self._problem = problem
        self._moved = dict(moved)
        self._free_mb: dict[str, int] = defaultdict(int)
        for vm, host in moved:
            self._free_mb[host] -= problem.memory_mb[vm]
            self._free_mb[problem.where[vm]] += problem.memory_mb[vm]

    @property
    def moved(self) -> Moved:
        """VMs that are elsewhere than at the start: equal placements have equal values."""
        return tuple(sorted(self._moved.items()))

    def where(self, vm: str) -> str:
        return self._moved.get(vm) or self._problem.where[vm]

    def free_mb(self, host: str) -> int:
        return self._problem.free_mb[host] + self._free_mb.get(host, 0)

    def after(self, move: Move) -> Placement:
        moved = dict(self._moved)
        for vm in move.vms:
            if self._problem.where[vm] == move.host:
                moved.pop(vm, None)
            else:
                moved[vm] = move.host
        return Placement(self._problem, tuple(sorted(moved.items())))

    def movable_by_host(self) -> dict[str, list[str]]:
        """Movable VMs by the host that they are on."""
        by_host: dict[str, list[str]] = {}
        for vm in self._problem.movable:
            by_host.setdefault(self.where(vm), []).append(vm)
        return by_host

    def rivals_on(self, vm: str, host: str) -> set[str]:
        """Negative peers that run on `host` or are on their way there."""
        return {
            rival
            for rival in self._problem.rivals.get(vm, ())
            if self.where(rival) == host or host in self._problem.pending.get(rival, ())
        }

    def legal(self, vm: str, host: str) -> bool:
        """Whether the engine's filters and ours let `vm` migrate to `host` now."""
        return (
            host in self._problem.allowed[vm]
            and self.where(vm) != host
            and self.free_mb(host) >= self._problem.memory_mb[vm]
            and not self.rivals_on(vm, host)
            and self._joins(self._problem.peers.get(vm, frozenset()), host)
            and self._joins(self._problem.all_peers.get(vm, frozenset()), host)
        )

    def _joins(self, peers: Iterable[str], host: str) -> bool:
        hosts: set[str] = set()
        for peer in peers:
            hosts.update(self._problem.pending.get(peer) or (self.where(peer),))
        return not hosts or host in hosts

    def legal_closure(self, group: Together, host: str) -> bool:
        """Whether the whole group may migrate at once to `host`, which holds none of it yet."""
        closure = group.vms
        return (
            all(host in self._problem.allowed[vm] and self.where(vm) != host for vm in closure)
            and all(self._problem.all_peers[vm] < closure for vm in closure)
            and self.free_mb(host) >= sum(self._problem.memory_mb[vm] for vm in closure)
            and not any(
                self.rivals_on(vm, host) or self._problem.rivals.get(vm, frozenset()) & closure
                for vm in closure
            )
        )

    def collisions(self, vms: Collection[str]) -> int:
        """Members that share a host with an earlier one."""
        return len(vms) - len({self.where(vm) for vm in vms})

    def broken(self, group: Group) -> bool:
        if isinstance(group, Apart):
            return self.collisions(group.vms) > 0
        return len({self.where(vm) for vm in group.vms}) > 1
