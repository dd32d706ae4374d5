"""The order in which VMs restart after a failure: by the engine's priorities, and within one by rules.

The engine starts VMs of a lower priority when those of a higher one are up. Of VMs of one priority it asks
nothing, nor do we, but what rules of the kind `restart_after` do. Where such a rule asks for the opposite of
the priorities it cannot be: the engine goes by these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from itertools import groupby

from ovirt_placement.lookups.index import once_whatever_is_pending
from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_rules.restart_order import find_ways, restart_orders


class Rank(Record, frozen=True):
    """When a VM is due among others: 1 is first. The two differ where nothing says more."""

    earliest: int
    latest: int


class RestartOrder:
    """What must restart before what."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._priorities = {vm.id: vm.ha_priority for vm in snapshot.vms}
        self._after: Mapping[str, tuple[frozenset[str], ...]] = {
            vm: tuple(one.vms for one in some) for vm, some in restart_orders(snapshot).after.items()
        }

    @property
    def by_rules(self) -> bool:
        """Whether any rule is about it, and not priorities alone."""
        return bool(self._after)

    def priority(self, vm: str) -> int:
        return self._priorities[vm]

    def ready(self, left: Collection[str]) -> list[str]:
        """Those of some VMs that may restart before all the others."""
        if not left:
            return []
        highest = max(map(self.priority, left))
        now = [vm for vm in left if self.priority(vm) == highest]
        return [vm for vm in now if not self._waits(vm, frozenset(now))] if self._after else now

    def ordered(self, vms: Iterable[str]) -> tuple[str, ...]:
        """The VMs as they may restart; where nothing says more, as they stand."""
        by_priority = sorted(vms, key=self._priorities.__getitem__, reverse=True)
        if not self._after:
            return tuple(by_priority)
        found: list[str] = []
        for _, same in groupby(by_priority, key=self.priority):
            found += self._by_rules([*same])
        return tuple(found)

    def must_follow(self, vm: str, others: Iterable[str]) -> bool:
        """Whether a VM itself may restart only after one of some others."""
        mine = self.priority(vm)
        return any(
            mine < self.priority(one) or (mine == self.priority(one) and self._waits(vm, frozenset({one})))
            for one in others
        )

    def free(self, vms: Collection[str]) -> bool:
        """Whether every order of some VMs is one in which they may restart."""
        return len(self.ready(vms)) == len(vms)

    def rank(self, vm: str, vms: Iterable[str]) -> Rank:
        """When a VM is due among some VMs, of which it is one."""
        priorities = {one: self.priority(one) for one in vms}
        own = frozenset(one for one, priority in priorities.items() if priority == priorities[vm])
        before = sum(priority > priorities[vm] for priority in priorities.values())
        behind = sum(priority < priorities[vm] for priority in priorities.values())
        directly = {one: self._before(one, own) for one in own}
        earlier = find_ways(vm, directly)
        later = sum(one != vm and vm in find_ways(one, directly) for one in own)
        return Rank(before + len(earlier) + 1, len(priorities) - behind - later)

    def _by_rules(self, vms: list[str]) -> list[str]:
        """VMs of one priority, the first that may restart always next."""
        if not any(vm in self._after for vm in vms):
            return vms
        own, place = frozenset(vms), {vm: number for number, vm in enumerate(vms)}
        waiting = TopologicalSorter({vm: self._before(vm, own) for vm in vms})
        waiting.prepare()
        free: list[int] = []
        found = []
        while waiting.is_active():
            for vm in waiting.get_ready():
                heappush(free, place[vm])
            vm = vms[heappop(free)]
            found.append(vm)
            waiting.done(vm)
        return found

    def _before(self, vm: str, vms: AbstractSet[str]) -> frozenset[str]:
        """Those of some VMs of one priority that the VM restarts after by a rule itself."""
        return frozenset(other for others in self._after.get(vm, ()) for other in others & vms)

    def _waits(self, vm: str, vms: AbstractSet[str]) -> bool:
        return any(not others.isdisjoint(vms) for others in self._after.get(vm, ()))


@once_whatever_is_pending
def restart_order(snapshot: Snapshot) -> RestartOrder:
    """The order of a snapshot."""
    return RestartOrder(snapshot)
