"""A candidate assignment with its incremental cost, and the hosts that are best for VMs in it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator
from contextlib import contextmanager
from heapq import nsmallest

from ovirt_placement.planning.problem.ends import fill, headroom_deficit
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Goal, Problem

#: What an end costs, as numbers of which the first that differ decide: hard rules lost, MiB that do not fit,
#: then all of `Score` but its last field.
Cost = tuple[int, ...]


class Assignment:
    """A placement that knows its cost. Unlike the end, it may be illegal for a while."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.placement = ProblemPlacement(problem)
        #: Goals that were satisfied at the start, are violated, and must not be.
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
            self.placement.excess,
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

    def moves_since(self, mark: int, until: int | None = None) -> dict[str, str]:
        """VMs that are elsewhere now than at the mark, with their hosts; or were so at a later mark."""
        before, after = dict[str, str](), dict[str, str]()
        for vm, source, host in self._trail[mark:until]:
            before.setdefault(vm, source)
            after[vm] = host
        return {vm: host for vm, host in after.items() if host != before[vm]}

    # -- hosts

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

    def left(self, host: str) -> list[str]:
        """VMs that start on a host and are elsewhere."""
        return [vm for vm in self.problem.on.get(host, ()) if vm in self.placement.moved]

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
            if goal.binding and goal.satisfied:
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
            missing = max(0, -self.placement.free_mb(host))
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


#: More goals of one VM on one level than this are not distinguished.
_MOST_GOALS = 1 << 16


class EmptiestFirst:
    """The hosts that may take VMs by how full they are."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._place = {host: number for number, host in enumerate(assignment.problem.hosts)}
        self._keys = {host: self._key(host) for host in self._place}
        self._sorted = sorted((key, host) for host, key in self._keys.items())

    def __iter__(self) -> Iterator[str]:
        return (host for _, host in self._sorted)

    def with_fill(self) -> Iterator[tuple[str, int]]:
        """The hosts, each with the share of it that is taken, in thousandths."""
        return ((host, fill) for (fill, _), host in self._sorted)

    def update(self, hosts: Collection[str]) -> None:
        """Some hosts have become fuller or emptier."""
        for host in set(hosts) & self._place.keys():
            del self._sorted[bisect_left(self._sorted, (self._keys[host], host))]
            self._keys[host] = self._key(host)
            insort(self._sorted, (self._keys[host], host))

    def _key(self, host: str) -> tuple[int, int]:
        return self._assignment.fill(host), self._place[host]


def allowed(assignment: Assignment, vms: Collection[str]) -> frozenset[str]:
    """Hosts to which each of some VMs may go, or on which it stands.

    One of a split group comes only to where others of it are, unless all come at once.
    """
    found: frozenset[str] | None = None
    for vm in vms:
        its = assignment.problem.targets[vm] | {assignment.where(vm)}
        for goal in assignment.problem.goals_of.get(vm, ()):
            if goal.split and not set(vms).issuperset(goal.vms):
                its &= assignment.placement.crowd(goal).keys()
        found = its if found is None else found & its
        if not found:
            break
    return found or frozenset()


def best_hosts(
    assignment: Assignment,
    order: EmptiestFirst,
    vms: Collection[str],
    limit: int,
    among: Collection[str] | None = None,
    but: Collection[str] = (),
) -> list[str]:
    """Up to `limit` hosts other than those of the VMs now, by what their goals say, room, and evenness."""
    here = {assignment.where(vm) for vm in vms}
    found = allowed(assignment, vms) - here
    if not found:
        return []
    penalties = HostPenalties(assignment, vms)
    memory_mb, cpu = assignment.size_mb(vms), assignment.cpu(vms)
    lowest = penalties.lowest
    good: list[str] = []
    others: list[tuple[int, str]] = []
    for host in order:
        if host not in found or host in but or (among is not None and host not in among):
            continue
        against = penalties.against(host)
        if (
            against == lowest
            and assignment.placement.free_mb(host) >= memory_mb
            and assignment.headroom_deficit_with(host, memory_mb, cpu) == (0, 0)
        ):
            good.append(host)
            if len(good) == limit:
                return good
        else:
            others.append((against, host))

    def fault(other: tuple[int, str]) -> tuple[int, bool, tuple[int, int]]:
        against, host = other
        return (
            against,
            assignment.placement.free_mb(host) < memory_mb,
            assignment.headroom_deficit_with(host, memory_mb, cpu),
        )

    return [*good, *(host for _, host in nsmallest(limit - len(good), others, key=fault))]


class HostPenalties:
    """What the goals of VMs that move together have against each host, as a number: 0 is nothing."""

    def __init__(self, assignment: Assignment, vms: Collection[str]) -> None:
        self._assignment = assignment
        self._everywhere = 0
        self._here: defaultdict[str, int] = defaultdict(int)
        #: Of goals that limit how many VMs share a place, how much they matter, and the hosts that are full.
        self._full: list[tuple[int, Container[str]]] = []
        self._moving = frozenset(vms)
        for goal in _goals(assignment, vms):
            if goal.wanted or goal.satisfied:
                self._add(goal, _MOST_GOALS ** (assignment.problem.levels - goal.level))

    @property
    def lowest(self) -> int:
        """What is against a host at least."""
        return self._everywhere + min(0, *self._here.values(), 0)

    def against(self, host: str) -> int:
        full = sum(weight for weight, full in self._full if host in full) if self._full else 0
        return self._everywhere + self._here.get(host, 0) + full

    def _add(self, goal: Goal, weight: int) -> None:
        if goal.limit is not None:
            self._full.append((weight, self._assignment.placement.full(goal, self._moving)))
        elif goal.sum is not None:
            full = self._assignment.placement.full(goal, self._moving)
            for host in goal.sum.hosts:
                self._here[host] += weight * (host in full)
        elif goal.allowed is not None:
            hosts, positive = goal.allowed.hosts, goal.allowed.positive
            self._everywhere += weight * positive
            for host in hosts:
                self._here[host] += -weight if positive else weight
        elif goal.gathers and not self._moving.issuperset(goal.vms):
            self._everywhere += weight
            leaving = Counter(map(self._assignment.where, self._moving.intersection(goal.vms)))
            for host, members in self._assignment.placement.crowd(goal).items():
                self._here[host] -= weight * (members > leaving[host])


def _goals(assignment: Assignment, vms: Collection[str]) -> Collection[Goal]:
    if len(vms) == 1:
        return assignment.problem.goals_of.get(next(iter(vms)), ())
    return {goal.number: goal for vm in vms for goal in assignment.problem.goals_of.get(vm, ())}.values()
