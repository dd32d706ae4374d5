"""Where the VMs of a problem are after some moves, and what is legal and what is broken there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ovirt_enforcer.planning.posed import Group, Move, Problem
from ovirt_placement.rules.constraint import Constraint

#: VMs that are elsewhere than at the start, with their hosts, sorted: equal standings have equal values.
Moved = tuple[tuple[str, str], ...]


class Standing:
    """The problem after some moves; constraints are held against it."""

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
        """VMs that are elsewhere than at the start: equal standings have equal values."""
        return tuple(sorted(self._moved.items()))

    def where(self, vm: str) -> str:
        return self._moved.get(vm) or self._problem.where[vm]

    def runs_on(self, vm: str) -> str | None:
        return self._moved.get(vm) or self._problem.where.get(vm)

    def destinations(self, vm: str) -> tuple[str, ...]:
        there = self._problem.pending.get(vm)
        return there or self._present(vm)

    def occupied(self, vm: str) -> tuple[str, ...]:
        there = self._problem.pending.get(vm)
        return (*there, *self._present(vm)) if there else self._present(vm)

    def _present(self, vm: str) -> tuple[str, ...]:
        host = self.runs_on(vm)
        return () if host is None else (host,)

    def free_mb(self, host: str) -> int:
        return self._problem.free_mb[host] + self._free_mb.get(host, 0)

    def after(self, move: Move) -> Standing:
        moved = dict(self._moved)
        for vm in move.vms:
            if self._problem.where[vm] == move.host:
                moved.pop(vm, None)
            else:
                moved[vm] = move.host
        return Standing(self._problem, tuple(sorted(moved.items())))

    def movable_by_host(self) -> dict[str, list[str]]:
        """Movable VMs by the host that they are on."""
        by_host: dict[str, list[str]] = {}
        for vm in self._problem.movable:
            by_host.setdefault(self.where(vm), []).append(vm)
        return by_host

    def rivals_on(self, vm: str, host: str) -> set[str]:
        """Negative peers that run on `host` or are on their way there."""
        return {rival for rival in self._problem.rivals.get(vm, ()) if host in self.occupied(rival)}

    def legal(self, vm: str, host: str) -> bool:
        """Whether the engine's filters and ours let `vm` migrate to `host` now."""
        return (
            host in self._problem.allowed[vm]
            and self.where(vm) != host
            and self.free_mb(host) >= self._problem.memory_mb[vm]
            and all(constraint.admits(vm, host, self) for constraint in self._problem.constraints[vm])
            and self._joins(self._problem.peers[vm], host)
        )

    def _joins(self, peers: Iterable[str], host: str) -> bool:
        """Whether the engine's own filter sees a peer there, or none anywhere."""
        hosts = {there for peer in peers for there in self.destinations(peer)}
        return not hosts or host in hosts

    def legal_closure(self, group: Group, host: str) -> bool:
        """Whether a whole positive group may migrate at once to `host`, which holds none of it yet."""
        closure = group.vms
        return (
            all(host in self._problem.allowed[vm] and self.where(vm) != host for vm in closure)
            and all(self._problem.all_peers[vm] < closure for vm in closure)
            and self.free_mb(host) >= sum(self._problem.memory_mb[vm] for vm in closure)
            and not any(self.rivals_on(vm, host) or self._problem.rivals[vm] & closure for vm in closure)
            and self._breaks_nothing(Move(tuple(closure), host), group.constraint)
        )

    def _breaks_nothing(self, move: Move, own: Constraint) -> bool:
        """Whether all constraints of the VMs but their own are kept no worse with all of them there."""
        after = self.after(move)
        others = {
            constraint.groups: constraint
            for vm in move.vms
            for constraint in self._problem.constraints[vm]
            if constraint.groups != own.groups
        }
        return all(one.surplus(after) <= one.surplus(self) for one in others.values())

    def surplus(self, group: Group) -> int:
        """How many of its running members must move at least for it to hold."""
        return group.constraint.surplus(self)

    def broken(self, group: Group) -> bool:
        return not group.constraint.keeps(self)
