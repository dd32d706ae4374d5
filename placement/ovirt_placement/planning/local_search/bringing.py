"""Brings a VM to a host: others make room first, for which still others may have to."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Iterator

from ovirt_placement.planning.local_search.walk import Walk
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.rules.forms import AtMost

#: VMs of a host that are tried for one that is to leave it, and hosts that each of them is offered.
_LEAVING = 4
_OFFERED = 3
#: So far the making of room goes on from host to host.
_DEPTH = 3


class Bringing:
    """By chance among what looks good: each new try gets another way."""

    def __init__(self, walk: Walk, dice: random.Random) -> None:
        self._walk = walk
        self._dice = dice

    def bring(self, vm: str, host: str, settled: frozenset[str]) -> bool:
        """Whether the VM is there in the end; if not, all is as before. Those that are `settled` stay."""
        return self._bring(vm, host, settled, frozenset(), _DEPTH)

    def hosts_for(self, vm: str, hosts: Collection[str]) -> list[str]:
        """The hosts, those first that take a VM as things are, and then by what they lack."""
        size_mb = self._walk.size_mb(self._walk.placement.closure(vm))
        return self._ranked(size_mb, hosts)

    def _ranked(self, size_mb: int, hosts: Collection[str]) -> list[str]:
        free_mb, chance = self._walk.placement.free_mb, self._dice.random

        def rank(host: str) -> tuple[bool, float]:
            lacking_mb = size_mb - free_mb(host)
            return lacking_mb > 0, chance() * (size_mb + abs(lacking_mb))

        return sorted(sorted(hosts), key=rank)

    def _bring(self, vm: str, host: str, settled: frozenset[str], closed: frozenset[str], depth: int) -> bool:
        """Nobody who makes room goes to a host that is `closed`: room is being made there."""
        walk = self._walk
        if walk.placement.where(vm) == host:
            return True
        for vms in dict.fromkeys(((vm,), walk.placement.closure(vm))):
            if walk.go(vms, host):
                return True
            if not all(host in walk.problem.targets[one] for one in vms) or walk.tries <= 0:
                continue
            mark = walk.mark
            staying, full = settled.union(vms), closed | {host}
            if (
                self._rivals_leave(vms, host, staying, full, depth)
                and self._clear(host, walk.size_mb(vms), staying, full, depth)
                and walk.go(vms, host)
            ):
                return True
            walk.back_to(mark)
        return False

    def _rivals_leave(
        self,
        vms: tuple[str, ...],
        host: str,
        settled: frozenset[str],
        closed: frozenset[str],
        depth: int,
    ) -> bool:
        goals = {goal.number: goal for vm in vms for goal in self._walk.problem.goals_of.get(vm, ())}
        return all(
            self._enough_leave(goal, goal.limit, vms, host, settled, closed, depth)
            for goal in goals.values()
            if goal.binding and goal.limit is not None
        )

    def _enough_leave(
        self,
        goal: Goal,
        limit: AtMost,
        vms: tuple[str, ...],
        host: str,
        settled: frozenset[str],
        closed: frozenset[str],
        depth: int,
    ) -> bool:
        """As many sets of a goal's VMs as make a place for these."""
        there: defaultdict[str, list[str]] = defaultdict(list)
        for rival in goal.rivals(frozenset(vms)):
            if limit.place(self._walk.placement.where(rival)) == limit.place(host):
                there[limit.own_set(rival)].append(rival)
        left = len(there) + len(limit.sets(vm for vm in vms if vm in goal.vms)) - limit.most
        for rivals in there.values():
            if left > 0 and all(
                rival not in settled and self._leave(rival, settled, closed, depth) for rival in rivals
            ):
                left -= 1
        return left <= 0

    def _clear(
        self, host: str, needed_mb: int, settled: frozenset[str], closed: frozenset[str], depth: int
    ) -> bool:
        """VMs leave a host until so much of it is free."""
        walk = self._walk
        while (lacking_mb := needed_mb - walk.placement.free_mb(host)) > 0:
            leaving = self._leavers(host, lacking_mb, settled)
            able = (vm for vm in leaving if self._leave(vm, settled, closed, 0))
            if next(able, None) is None:
                able = (vm for vm in leaving if depth > 0 and self._leave(vm, settled, closed, depth))
                if next(able, None) is None:
                    return False
        return True

    def _leavers(self, host: str, lacking_mb: int, settled: frozenset[str]) -> list[str]:
        """VMs that had better leave: those that come nearest to making the room alone."""
        walk = self._walk
        there = [vm for vm in walk.residents(host) if vm not in settled]
        sizes = {vm: walk.size_mb(walk.placement.closure(vm)) for vm in there}
        if sum(walk.problem.memory_mb[vm] for vm in there) < lacking_mb:
            return []
        there.sort(key=lambda vm: self._dice.random() * (lacking_mb + 2 * abs(sizes[vm] - lacking_mb)))
        return there[:_LEAVING]

    def _leave(self, vm: str, settled: frozenset[str], closed: frozenset[str], depth: int) -> bool:
        """To a host that takes it as things are; else, as far as `depth` goes, to one that makes room."""
        walk = self._walk
        vms = walk.placement.closure(vm)
        if not settled.isdisjoint(vms):
            return False
        size_mb, free_mb = walk.size_mb(vms), walk.placement.free_mb
        hosts = walk.problem.targets[vm] - closed
        fitting = [host for host in hosts if free_mb(host) >= size_mb]
        if any(walk.go(vms, host) for host in self._ranked(size_mb, fitting)):
            return True
        return depth > 0 and any(
            self._bring(vm, host, settled, closed, depth - 1)
            for host in self._few(self._ranked(size_mb, hosts))
        )

    def _few(self, hosts: Collection[str]) -> Iterator[str]:
        for number, host in enumerate(hosts):
            if number == _OFFERED or self._walk.tries <= 0:
                return
            yield host
