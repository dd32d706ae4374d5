"""What is decided together with a few VMs that are not where they had best be: all that is in their way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from ovirt_placement.planning.assignment.optimal.construction import Construction
from ovirt_placement.planning.assignment.optimal.domains import reduced, roomiest
from ovirt_placement.planning.problem.goal import Goal

#: Each of these grows with the size of a neighbourhood, from 1:
#: hosts that are cleared for a VM under host affinity, and hosts that are the emptiest;
_WANTED_HOSTS = 4
_EMPTY_HOSTS = 2
#: bystanders of a host that need as much memory, and the hosts that each of them is offered;
_ALIKE = 2
_OFFERED = 6
#: and VMs of other parts.
_OTHERS = 60


NO_AIMS: Mapping[str, str] = {}


class Neighbourhood:
    """Around some VMs, as things stand. Of bystanders that are alike a few stand for all."""

    def __init__(
        self,
        construction: Construction,
        seed: Collection[str],
        size: int,
        aims: Mapping[str, str] = NO_AIMS,
    ) -> None:
        """`aims` are hosts where some had best be: with them, all others are offered few."""
        self._problem = construction.problem
        self._candidates = construction.candidates
        self._placement = construction.placement
        self._size = size
        self._order = roomiest(construction.placement)
        self._aims = aims
        self._hosts = set(aims.values()) if aims else self._around(seed)
        self._vms = {*seed, *self._others(construction, seed)}

    def domains(self) -> Mapping[str, tuple[str, ...]]:
        """The VMs to be decided, each with its hosts."""
        domains: dict[str, tuple[str, ...]] = {}
        if not self._aims:
            domains |= reduced(self._placement, self._candidates, self._vms, self._order, more=self._size)
        offered = set(self._order[: _OFFERED * self._size])
        if self._size > 1 and not self._aims:
            offered |= self._hosts
        for vm in (*self._vms.difference(domains), *self._bystanders()):
            own = (self._problem.where[vm], self._placement.where(vm), self._aims.get(vm))
            domains[vm] = tuple(host for host in self._candidates.of(vm) if host in offered or host in own)
        return domains

    def _around(self, seed: Collection[str]) -> set[str]:
        """Hosts that these VMs leave or come to, and those on which what is asked of them would hold."""
        where = self._problem.where
        hosts = {where[vm] for vm in seed} | {self._placement.where(vm) for vm in seed}
        hosts |= set(self._order[: _EMPTY_HOSTS * self._size])
        for goal in {goal for vm in seed for goal in self._problem.goals_of.get(vm, ())}:
            hosts |= self._wanted(goal, seed) if goal.wanted or goal.satisfied else set()
        return hosts

    def _wanted(self, goal: Goal, seed: Collection[str]) -> set[str]:
        if goal.gathers:
            return {self._problem.where[vm] for vm in goal.vms}
        if goal.allowed is None:
            return set()
        members = [vm for vm in goal.vms if vm in seed]
        ends = {host for vm in members for host in self._candidates.of(vm) if goal.right(host)}
        return set([host for host in self._order if host in ends][: _WANTED_HOSTS * self._size])

    def _others(self, construction: Construction, seed: Collection[str]) -> Iterator[str]:
        """VMs that moved from or to these hosts, with those that goals tie to them."""
        near = [
            vm
            for vm, host in sorted(self._placement.moved.items())
            if vm not in seed and (host in self._hosts or self._problem.where[vm] in self._hosts)
        ]
        left = _OTHERS * self._size
        for vms in dict.fromkeys(construction.part_of.get(vm, (vm,)) for vm in near):
            if len(vms) <= left:
                left -= len(vms)
                yield from vms

    def _bystanders(self) -> Iterator[str]:
        """VMs on these hosts that may leave them; first those that no goal is about."""
        problem, placement = self._problem, self._placement
        arrived: dict[str, list[str]] = {}
        for vm, host in placement.moved.items():
            arrived.setdefault(host, []).append(vm)
        for host in sorted(self._hosts):
            here = [vm for vm in problem.on.get(host, ()) if placement.where(vm) == host]
            able = [
                vm
                for vm in (*here, *arrived.get(host, ()))
                if vm not in self._vms and vm in problem.memory_mb and len(self._candidates.of(vm)) > 1
            ]
            seen: Counter[int] = Counter()
            for vm in sorted(able, key=lambda vm: (bool(problem.goals_of.get(vm)), vm)):
                seen[problem.memory_mb[vm]] += 1
                if seen[problem.memory_mb[vm]] <= _ALIKE * self._size:
                    yield vm
