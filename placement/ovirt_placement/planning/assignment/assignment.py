"""A candidate assignment with its incremental cost: VMs are moved and moved back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.problem.score import fill, headroom_deficit

#: What an end costs, as numbers of which the first that differ decide: hard rules lost, MiB that do not fit,
#: then all of `Score` but its last field.
Cost = tuple[int, ...]


class Assignment:
    """A placement that knows its cost. Unlike the end, it may be illegal for a while."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.placement = ProblemPlacement(problem)
        #: Hard goals that were satisfied at the start and are violated.
        self.lost: dict[int, Goal] = {}
        #: Hosts on which VMs do not fit, with the MiB that are missing.
        self.overfull: dict[str, int] = {}
        #: Hosts whose headroom is cut into, with MiB and percent of a core.
        self.crowded: dict[str, tuple[int, int]] = {}
        self._headroom_deficit_mb = self._headroom_deficit_cpu = 0
        self._memory_mb = 0
        self._arrived: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._more_mb: defaultdict[str, int] = defaultdict(int)
        self._more_cpu: defaultdict[str, float] = defaultdict(float)
        #: Every move since the beginning: the VM, the host that it left, and the one that it came to.
        self._trail: list[tuple[str, str, str]] = []

    @property
    def cost(self) -> Cost:
        hard, *soft = self.placement.violations()
        return (
            len(self.lost),
            sum(self.overfull.values()),
            hard,
            self._headroom_deficit_mb,
            self._headroom_deficit_cpu,
            *soft,
            self.placement.pairs,
            len(self.placement.moved),
            self._memory_mb,
        )

    def where(self, vm: str) -> str:
        return self.placement.where(vm)

    # -- moving, and taking moves back

    def move(self, vms: Iterable[str], host: str) -> None:
        """Put VMs on a host, legal or not."""
        for vm in vms:
            source = self.placement.where(vm)
            if source != host:
                self._trail.append((vm, source, host))
                self._shift(vm, source, host)

    @property
    def mark(self) -> int:
        """A point that `back_to` goes back to."""
        return len(self._trail)

    def back_to(self, mark: int) -> None:
        while len(self._trail) > mark:
            vm, source, host = self._trail.pop()
            self._shift(vm, host, source)

    @contextmanager
    def as_at(self, mark: int) -> Iterator[None]:
        """Go back to a mark for a while; whatever is moved meanwhile is undone."""
        since = self._trail[mark:]
        self.back_to(mark)
        yield
        self.back_to(mark)
        for vm, _, host in since:
            self.move((vm,), host)

    def moves_since(self, mark: int) -> dict[str, str]:
        """VMs that are elsewhere than at the mark, with their hosts."""
        before: dict[str, str] = {}
        for vm, source, _ in self._trail[mark:]:
            before.setdefault(vm, source)
        return {vm: now for vm, source in before.items() if (now := self.where(vm)) != source}

    # -- hosts

    def room_mb(self, host: str) -> int:
        return self.placement.free_mb(host)

    def headroom_deficit_with(self, host: str, memory_mb: int, cpu: float) -> tuple[int, int]:
        """How much of a host's headroom would be taken, if so much more came to it."""
        spare_cpu = self.problem.spare_cpu.get(host)
        return (
            headroom_deficit(self._more_mb[host] + memory_mb, self.problem.spare_mb[host]),
            0 if spare_cpu is None else headroom_deficit(self._more_cpu[host] + cpu, spare_cpu),
        )

    def headroom_deficit_of(self, host: str) -> tuple[int, int]:
        return self.crowded.get(host, (0, 0))

    def rise(self, host: str) -> tuple[int, float]:
        """What a host has more than at the start: MiB, and percent of a core."""
        return self._more_mb[host], self._more_cpu[host]

    def fill(self, host: str, memory_mb: int = 0, cpu: float = 0.0) -> int:
        """The share of a host that is taken, in thousandths, if so much more comes to it."""
        return fill(self.problem, host, self._more_mb[host] + memory_mb, self._more_cpu[host] + cpu)

    def arrived(self, host: str) -> tuple[str, ...]:
        """VMs that were moved to a host."""
        return tuple(self._arrived[host])

    def residents(self, host: str) -> Iterator[str]:
        """VMs on a host: first those that were moved there, then those that were always there."""
        yield from self.arrived(host)
        for vm in self.problem.on.get(host, ()):
            if self.placement.where(vm) == host:
                yield vm

    # -- VMs

    def block(self, vm: str) -> tuple[str, ...]:
        """All VMs that move with one: a hard positive group that stands together."""
        for goal in self.problem.goals_of.get(vm, ()):
            if goal.hard and goal.gathers and not self.placement.violated(goal):
                return goal.vms
        return (vm,)

    def size_mb(self, vms: Iterable[str]) -> int:
        return sum(self.problem.memory_mb[vm] for vm in vms)

    def cpu(self, vms: Iterable[str]) -> float:
        return sum(self.problem.cpu[vm] for vm in vms)

    def _shift(self, vm: str, source: str, host: str) -> None:
        problem = self.problem
        home = problem.where[vm]
        self.placement.move((vm,), host)
        for place, sign in ((source, -1), (host, 1)):
            self._more_mb[place] += sign * problem.memory_mb[vm]
            self._more_cpu[place] += sign * problem.cpu[vm]
        if source == home:
            self._memory_mb += problem.memory_mb[vm]
        else:
            del self._arrived[source][vm]
        if host == home:
            self._memory_mb -= problem.memory_mb[vm]
        else:
            self._arrived[host][vm] = None
        for goal in problem.goals_between(vm, source, host):
            if goal.hard and goal.satisfied:
                if self.placement.violated(goal):
                    self.lost[goal.number] = goal
                else:
                    self.lost.pop(goal.number, None)
        self._weigh(source)
        self._weigh(host)

    def _weigh(self, host: str) -> None:
        """Find again what does not fit on a host and what its headroom lacks, if something came to it."""
        now, missing = (0, 0), 0
        if self._arrived[host]:
            now = self.headroom_deficit_with(host, 0, 0.0)
            missing = max(0, -self.room_mb(host))
        if missing:
            self.overfull[host] = missing
        else:
            self.overfull.pop(host, None)
        before = self.headroom_deficit_of(host)
        if now != before:
            if any(now):
                self.crowded[host] = now
            else:
                del self.crowded[host]
            self._headroom_deficit_mb += now[0] - before[0]
            self._headroom_deficit_cpu += now[1] - before[1]
