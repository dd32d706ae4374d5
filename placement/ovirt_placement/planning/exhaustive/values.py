"""How good many placements are at once: what `Score` proves, as one number."""

from __future__ import annotations

import numpy as np

from ovirt_placement.planning.exhaustive.space import Look, Numbers, Space

#: Hard, crowding, soft by level, pairs.
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
        pairs = sum(len(goal.vms) * (len(goal.vms) - 1) // 2 for goal in self._partly)
        self._sizes = [most[0] + 1, headroom_deficit + 1, *(one + 1 for one in most[1:]), pairs + 1]
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
        look = self._space.look(states)
        levels = [np.zeros(len(states), dtype=np.int64) for _ in range(self._problem.levels)]
        for goal in self._counted:
            levels[goal.level] += look.violated(goal)
        total = levels[0] * self._sizes[1]
        if self._crowds:
            total += self._headroom_deficit(look)
        pairs = sum((look.pairs(goal) for goal in self._partly), start=np.zeros(len(states), dtype=np.int64))
        for level, size in zip((*levels[1:], pairs), self._sizes[2:], strict=True):
            total = total * size + level
        return total

    def memory_mb(self, states: Numbers) -> Numbers:
        """MiB of the VMs that are elsewhere than at the start."""
        total = np.zeros(len(states), dtype=np.int64)
        for vm in self._space.hosts:
            total += self._problem.memory_mb[vm] * (self._space.digits(vm, states) != 0)
        return total

    def _headroom_deficit(self, look: Look) -> Numbers:
        problem = self._problem
        total = np.zeros(len(look.states), dtype=np.int64)
        for host in problem.hosts:
            total += np.maximum(0, look.taken_mb[host] - max(0, problem.spare_mb[host]))
            if host in problem.spare_cpu:
                cpu = look.taken_cpu[host] / 1000 - max(0.0, problem.spare_cpu[host])
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
