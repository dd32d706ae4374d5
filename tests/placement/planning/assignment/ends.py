"""All ends of a tiny cluster, judged by the definitions of the rules alone.

It shares no code with the planner or the rules: it reads groups, hosts and VMs of the model and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from ovirt_placement.model import Snapshot
from tests.builders import needed_mb

#: Hosts of the running VMs, in the order of the snapshot.
End = tuple[str, ...]
#: Violated hard units, violated soft units from the highest priority down, VMs that moved.
Value = tuple[int, tuple[int, ...], int]


@dataclass(frozen=True)
class Unit:
    """What is counted as one: a VM rule, a host rule, or hard positive groups that share VMs."""

    hard: bool
    priority: float
    vms: frozenset[int]
    violated: Callable[[Sequence[str]], bool]
    of_hosts: bool = False

    def breaks(self, end: End) -> bool:
        return self.violated([end[vm] for vm in self.vms])


class Ends:
    """Of one cluster without labels, whose VMs may all be migrated unless they are said not to be."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.vms = [vm for vm in snapshot.vms if vm.host is not None]
        self.start: End = tuple(vm.host or "" for vm in self.vms)
        self._numbers = {vm.id: number for number, vm in enumerate(self.vms)}
        self.units = [unit for unit in self._units() if unit.vms]
        self._priorities = sorted({unit.priority for unit in self.units if not unit.hard}, reverse=True)
        self._held = [unit for unit in self.units if unit.hard and not unit.breaks(self.start)]

    def best(self) -> Value:
        """The least value of all legal ends."""
        choices = [
            [host.id for host in self._snapshot.hosts] if vm.migratable else [vm.host or ""]
            for vm in self.vms
        ]
        return min(self.value(end) for end in product(*choices) if self.why_illegal(end) is None)

    def value(self, end: End) -> Value:
        soft = Counter(unit.priority for unit in self.units if not unit.hard and unit.breaks(end))
        return (
            sum(unit.hard and unit.breaks(end) for unit in self.units),
            tuple(soft[priority] for priority in self._priorities),
            sum(now != before for now, before in zip(end, self.start, strict=True)),
        )

    def pairs(self, end: End) -> int:
        """Pairs of VMs on one host that a hard rule wants apart which is violated at the start."""
        apart = [unit.vms for unit in self.units if unit.hard and unit.violated is _crowded]
        crowded = [vms for vms in apart if _crowded([self.start[vm] for vm in vms])]
        return sum(end[one] == end[other] for vms in crowded for one, other in combinations(vms, 2))

    def why_illegal(self, end: End) -> str | None:
        for number, (vm, now) in enumerate(zip(self.vms, end, strict=True)):
            rules = (unit for unit in self.units if unit.hard and unit.of_hosts and number in unit.vms)
            if now != vm.host and any(unit.violated([now]) for unit in rules):
                return f"the engine refuses {vm.id} on {now}"
        for host in self._snapshot.hosts:
            come = sum(needed_mb(vm) for vm, now in zip(self.vms, end, strict=True) if now == host.id)
            gone = sum(needed_mb(vm) for vm in self.vms if vm.host == host.id)
            if come > gone + host.free_mb:
                return f"{host.id} is overfull"
        lost = [unit for unit in self._held if unit.breaks(end)]
        return f"{lost} held" if lost else None

    def after(self, where: Mapping[str, str]) -> End:
        return tuple(where.get(vm.id, vm.host or "") for vm in self.vms)

    def _units(self) -> Iterator[Unit]:
        groups = self._snapshot.affinity_groups
        gathered = [
            set(group.vms)
            for group in groups
            if group.vms_rule.enabled and group.vms_rule.positive and group.vms_rule.enforcing
        ]
        while pair := next((two for two in combinations(gathered, 2) if two[0] & two[1]), None):
            gathered = [vms for vms in gathered if vms not in pair] + [pair[0] | pair[1]]
        for vms in gathered:
            yield Unit(True, 0.0, self._running(vms), _split)
        for group in groups:
            rule, vms = group.vms_rule, self._running(group.vms)
            if rule.enabled and not (rule.positive and rule.enforcing):
                yield Unit(rule.enforcing, group.priority, vms, _split if rule.positive else _crowded)
            rule = group.hosts_rule
            if rule.enabled and group.hosts:
                outside = _outside(group.hosts, not rule.positive)
                yield Unit(rule.enforcing, group.priority, vms, outside, of_hosts=True)

    def _running(self, vms: Sequence[str] | set[str]) -> frozenset[int]:
        return frozenset(self._numbers[vm] for vm in vms if vm in self._numbers)


def _split(hosts: Sequence[str]) -> bool:
    return len(set(hosts)) > 1


def _crowded(hosts: Sequence[str]) -> bool:
    return len(set(hosts)) < len(hosts)


def _outside(listed: Sequence[str], inverted: bool) -> Callable[[Sequence[str]], bool]:
    return lambda hosts: any((host in listed) is inverted for host in hosts)
