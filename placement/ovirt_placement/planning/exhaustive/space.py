"""All placements of a small problem as numbers, and what is true of many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np
import numpy.typing as npt

from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.placement import MovedPlacement
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.rules.elements.constraints import AtMost

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Space:
    """Numbers the placements: of each VM that can move, a digit says on which of its hosts it is."""

    def __init__(self, problem: Problem, candidates: CandidateHosts) -> None:
        self.problem = problem
        hosts = {vm: candidates.of(vm) for vm in sorted(problem.memory_mb)}
        self.hosts = {vm: its for vm, its in hosts.items() if len(its) > 1}
        self.strides: dict[str, int] = {}
        stride = 1
        for vm, its in self.hosts.items():
            self.strides[vm] = stride
            stride *= len(its)
        places = {host for its in problem.pending.values() for host in its}
        self.number_of = {
            host: number
            for number, host in enumerate(sorted({*problem.hosts, *problem.where.values(), *places}))
        }
        self._places = {
            vm: np.array([self.number_of[host] for host in its], dtype=np.int16)
            for vm, its in self.hosts.items()
        }

    @property
    def size(self) -> int:
        """How many placements there are; the start is number 0."""
        return prod(len(its) for its in self.hosts.values())

    def placements(self, states: Numbers) -> Placements:
        return Placements(self, states)

    def where(self, state: int) -> dict[str, str]:
        """The hosts of the VMs that can move."""
        return {vm: its[state // self.strides[vm] % len(its)] for vm, its in self.hosts.items()}

    def at(self, state: int) -> MovedPlacement:
        """One placement, as constraints ask for it."""
        return MovedPlacement(self.problem, self.where(state))

    def digits(self, vm: str, states: Numbers) -> Numbers:
        return states // self.strides[vm] % len(self.hosts[vm])

    def places(self, vm: str, states: Numbers) -> npt.NDArray[np.int16]:
        """The number of the host of a VM in each of the states."""
        if vm in self.hosts:
            return self._places[vm][self.digits(vm, states)]
        return np.full(len(states), self.number_of[self.problem.where[vm]], dtype=np.int16)


class Placements:
    """What is true of some placements."""

    def __init__(self, space: Space, states: Numbers) -> None:
        self.space = space
        self.states = states
        self.problem = space.problem
        self._places: dict[str, npt.NDArray[np.int16]] = {}
        self._violated: dict[int, Flags] = {}
        self._there: dict[tuple[str, str], Flags] = {}

    def none(self) -> Flags:
        return np.zeros(len(self.states), dtype=np.bool_)

    def every(self) -> Flags:
        return np.ones(len(self.states), dtype=np.bool_)

    def places(self, vm: str) -> npt.NDArray[np.int16]:
        known = self._places.get(vm)
        if known is None:
            known = self._places[vm] = self.space.places(vm, self.states)
        return known

    def on(self, vm: str, host: str) -> Flags:
        """Whether a VM runs on a host."""
        known = self._there.get((vm, host))
        if known is None:
            known = self._there[vm, host] = self.places(vm) == self.space.number_of.get(host, -1)
        return known

    def heads_for(self, vm: str, host: str) -> Flags:
        """Whether a VM is to be found on a host: on its target while it is on its way."""
        there = self.problem.pending.get(vm)
        if there:
            return self.every() if host in there else self.none()
        return self.on(vm, host)

    def holds(self, vm: str, host: str) -> Flags:
        """Whether a VM is on a host or on its way there."""
        there = self.problem.pending.get(vm, ())
        return self.every() if host in there else self.on(vm, host)

    @cached_property
    def taken_mb(self) -> Mapping[str, Numbers]:
        """MiB that each host has more than at the start."""
        return self._taken(self.problem.memory_mb)

    @cached_property
    def taken_cpu(self) -> Mapping[str, Numbers]:
        """The same of CPU, in thousandths of a percent of a core."""
        return self._taken({vm: round(1000 * cpu) for vm, cpu in self.problem.cpu.items()})

    def _taken(self, need: Mapping[str, int]) -> Mapping[str, Numbers]:
        taken = {host: np.zeros(len(self.states), dtype=np.int64) for host in self.problem.hosts}
        for vm, hosts in self.space.hosts.items():
            for host in hosts:
                if host in taken:
                    change = self.on(vm, host).astype(np.int64) - (host == self.problem.where[vm])
                    taken[host] += need[vm] * change
        return taken

    def violated(self, goal: Goal) -> Flags:
        known = self._violated.get(goal.number)
        if known is None:
            known = self._violated[goal.number] = (
                self.excess(goal) > 0 if goal.limit is None else self._above(goal, goal.limit)
            )
        return known

    def _above(self, goal: Goal, limit: AtMost) -> Flags:
        places = dict.fromkeys(map(limit.place, self.space.number_of))
        above = [self.load(limit, goal.vms, place, arriving=False) > limit.most for place in places]
        return np.asarray(np.logical_or.reduce(above), dtype=np.bool_)

    def pairs(self, goal: Goal) -> Numbers:
        """How many pairs of a goal's VMs share a host."""
        shared = [self.places(one) == self.places(other) for one, other in combinations(goal.vms, 2)]
        return np.asarray(np.sum(shared, axis=0), dtype=np.int64)

    def excess(self, goal: Goal) -> Numbers:
        """How much of a goal is violated, as its constraint counts it; of a positive group, whether it is."""
        if goal.gathers:
            first = self.places(goal.vms[0])
            return np.asarray(np.logical_or.reduce([self.places(vm) != first for vm in goal.vms]), np.int64)
        if goal.sum is not None:
            total = sum(
                goal.sum.amounts[vm] * self._sum(self.on(vm, host) for host in sorted(goal.sum.hosts))
                for vm in goal.vms
            )
            return np.maximum(0, total - goal.sum.most)
        if goal.collective:
            found = (goal.constraint.excess(self.space.at(int(state))) for state in self.states)
            return np.fromiter(found, dtype=np.int64, count=len(self.states))
        if goal.limit is None:
            wrong = np.array([not goal.right(host) for host in self.space.number_of], dtype=np.bool_)
            return self._sum(wrong[self.places(vm)] for vm in goal.vms)
        limit = goal.limit
        places = dict.fromkeys(map(limit.place, self.space.number_of))
        total = np.full(len(self.states), len(goal.vms), dtype=np.int64)
        for place in places:
            hosts = [host for host in self.space.number_of if limit.place(host) == place]
            sizes = [
                self._sum(self.on(vm, host) for vm in goal.vms if limit.own_set(vm) == one for host in hosts)
                for one in sorted(limit.sets(goal.vms))
            ]
            total -= np.sort(np.array(sizes), axis=0)[::-1][: limit.most].sum(axis=0)
        return total

    def _sum(self, flags: Iterable[Flags]) -> Numbers:
        return sum((one.astype(np.int64) for one in flags), np.zeros(len(self.states), dtype=np.int64))

    def load(self, limit: AtMost, vms: Iterable[str], place: str, *, arriving: bool) -> Numbers:
        """How many sets of some VMs are on a place; with `arriving`, those on their way there as well."""
        sets: dict[str, Flags] = {}
        hosts = [host for host in self.space.number_of if limit.place(host) == place]
        for vm in vms:
            for host in hosts:
                there = self.holds(vm, host) if arriving else self.on(vm, host)
                sets[limit.own_set(vm)] = sets.get(limit.own_set(vm), False) | there
        return self._sum(sets.values())


#: Hard, crowding, soft by level, excess.
Value = tuple[int, ...]


class Values:
    """Violated goals by level and crowding, joined so that less is better."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._problem = problem = space.problem
        self._counted = [goal for goal in problem.goals if goal.wanted or goal.satisfied]
        most = [sum(goal.level == level for goal in self._counted) for level in range(problem.levels)]
        headroom_deficit = self._most_headroom_deficit()
        #: How large each field can be, plus 1.
        self._partly = [goal for goal in problem.goals if goal.partly]
        excess = sum(map(_most_excess, self._partly))
        self._sizes = [most[0] + 1, headroom_deficit + 1, *(one + 1 for one in most[1:]), excess + 1]
        self._crowds = headroom_deficit > 0

    @property
    def fit(self) -> bool:
        """Whether one number can hold them all."""
        joined = 1
        for size in self._sizes:
            joined *= size
        return joined < 2**62

    def joined(self, value: Value) -> int:
        total = 0
        for size, part in zip(self._sizes, value, strict=True):
            total = total * size + min(part, size - 1)
        return total

    def of(self, states: Numbers) -> Numbers:
        placements = self._space.placements(states)
        levels = [np.zeros(len(states), dtype=np.int64) for _ in range(self._problem.levels)]
        for goal in self._counted:
            levels[goal.level] += placements.violated(goal)
        total = levels[0] * self._sizes[1]
        if self._crowds:
            total += self._headroom_deficit(placements)
        excess = np.zeros(len(states), dtype=np.int64)
        for goal in self._partly:
            excess += placements.pairs(goal) if goal.by_pairs else placements.excess(goal)
        for level, size in zip((*levels[1:], excess), self._sizes[2:], strict=True):
            total = total * size + level
        return total

    def memory_mb(self, states: Numbers) -> Numbers:
        """MiB of the VMs that are elsewhere than at the start."""
        total = np.zeros(len(states), dtype=np.int64)
        for vm in self._space.hosts:
            total += self._problem.memory_mb[vm] * (self._space.digits(vm, states) != 0)
        return total

    def _headroom_deficit(self, placements: Placements) -> Numbers:
        problem = self._problem
        total = np.zeros(len(placements.states), dtype=np.int64)
        for host in problem.hosts:
            total += np.maximum(0, placements.taken_mb[host] - max(0, problem.spare_mb[host]))
            if host in problem.spare_cpu:
                cpu = placements.taken_cpu[host] / 1000 - max(0.0, problem.spare_cpu[host])
                total += np.maximum(0, np.round(cpu)).astype(np.int64)
        return total

    def _most_headroom_deficit(self) -> int:
        problem = self._problem
        most = 0
        for host in problem.hosts:
            coming = [vm for vm, its in self._space.hosts.items() if host in its[1:]]
            memory = sum(problem.memory_mb[vm] for vm in coming) - max(0, problem.spare_mb[host])
            if problem.spare_mb[host] < problem.free_mb[host]:
                most += max(0, memory)
            if host in problem.spare_cpu:
                cpu = sum(problem.cpu[vm] for vm in coming) - max(0.0, problem.spare_cpu[host])
                most += max(0, round(cpu))
        return most


def _most_excess(goal: Goal) -> int:
    """What the excess of a goal cannot be above."""
    if goal.by_pairs:
        return len(goal.vms) * (len(goal.vms) - 1) // 2
    return sum(goal.sum.amounts[vm] for vm in goal.vms) if goal.sum is not None else len(goal.vms)
