"""Hosts for VMs that move together, the best first: violations there, room, then the emptiest."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest

from ovirt_placement.planning.assignment.assignment import Assignment
from ovirt_placement.planning.problem.goal import Goal

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
    """Hosts to which each of some VMs may go, or on which it stands."""
    found: frozenset[str] | None = None
    for vm in vms:
        its = assignment.problem.targets[vm] | {assignment.where(vm)}
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
            and assignment.room_mb(host) >= memory_mb
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
            assignment.room_mb(host) < memory_mb,
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
            self._everywhere += weight * goal.allowed.positive
            for host in goal.allowed.hosts:
                self._here[host] += -weight if goal.allowed.positive else weight
        elif goal.gathers and not self._moving.issuperset(goal.vms):
            staying = self._staying(goal)
            self._everywhere += weight
            for host in filter(staying.on, staying.crowd):
                self._here[host] -= weight

    def _staying(self, goal: Goal) -> _Staying:
        leaving: defaultdict[str, int] = defaultdict(int)
        for vm in self._moving:
            if goal in self._assignment.problem.goals_of.get(vm, ()):
                leaving[self._assignment.where(vm)] += 1
        return _Staying(self._assignment.placement.crowd(goal), leaving)


@dataclass(frozen=True, slots=True)
class _Staying:
    """The members of a goal that do not move along."""

    crowd: Mapping[str, int]
    leaving: Mapping[str, int]

    def on(self, host: str) -> bool:
        return self.crowd.get(host, 0) > self.leaving.get(host, 0)


def _goals(assignment: Assignment, vms: Collection[str]) -> Collection[Goal]:
    if len(vms) == 1:
        return assignment.problem.goals_of.get(next(iter(vms)), ())
    return {goal.number: goal for vm in vms for goal in assignment.problem.goals_of.get(vm, ())}.values()
