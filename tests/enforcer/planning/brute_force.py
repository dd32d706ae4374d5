"""An oracle for plans of tiny clusters: walks all placements, knows the rules from their definitions alone.

It shares no code with the planner or the rules: it reads groups, hosts and VMs of the model and nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import combinations

from ovirt_placement.model import Snapshot

Assignment = tuple[str, ...]


class BruteForce:
    """All placements that legal migrations reach from a snapshot of one cluster."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.vms = [vm for vm in snapshot.vms if vm.host is not None]
        self.index = {vm.id: number for number, vm in enumerate(self.vms)}
        self.hosts = snapshot.hosts
        self.total = {
            host.id: host.free_mb + sum(vm.memory_mb for vm in self.vms if vm.host == host.id)
            for host in snapshot.hosts
        }
        self.start: Assignment = tuple(vm.host or "" for vm in self.vms)
        hard = [
            group for group in snapshot.affinity_groups if group.vms_rule.enabled and group.vms_rule.enforcing
        ]
        self.positive = [set(group.vms) for group in hard if group.vms_rule.positive]
        self.negative = [
            {self.index[vm] for vm in group.vms if vm in self.index}
            for group in hard
            if not group.vms_rule.positive
        ]
        self.unified = [{self.index[vm] for vm in vms if vm in self.index} for vms in self._merged()]
        self.listed = [
            (set(group.vms), set(group.hosts), group.hosts_rule.positive)
            for group in snapshot.affinity_groups
            if group.hosts_rule.enabled and group.hosts_rule.enforcing and group.hosts
        ]

    def _merged(self) -> list[set[str]]:
        sets = [set(vms) for vms in self.positive]
        again = True
        while again:
            again = False
            for one, other in combinations(sets, 2):
                if one & other:
                    one |= other
                    sets.remove(other)
                    again = True
                    break
        return sets

    def score(self, at: Assignment) -> tuple[int, int]:
        """Broken groups, and members of negative groups that share a host."""
        collisions = [len(group) - len({at[vm] for vm in group}) for group in self.negative]
        split = [len({at[vm] for vm in group}) > 1 for group in self.unified]
        return sum(split) + sum(c > 0 for c in collisions), sum(collisions)

    def best(self) -> tuple[tuple[int, int], int]:
        """The best score that can be reached, and the fewest migrations that reach it."""
        cheapest = {self.start: 0}
        queue = deque([self.start])
        while queue:
            at = queue.popleft()
            for after, cost in self.migrations(at):
                if cheapest[at] + cost < cheapest.get(after, 10**9):
                    cheapest[after] = cheapest[at] + cost
                    queue.append(after)
        return min((self.score(at), cost) for at, cost in cheapest.items())

    def migrations(self, at: Assignment) -> Iterator[tuple[Assignment, int]]:
        """Placements one request away: of one VM, or of a whole unified group to a host without any of it."""
        groups = [frozenset({vm}) for vm in range(len(self.vms))]
        groups += [frozenset(group) for group in self.unified if len(group) > 1]
        for moving in groups:
            for host in self.hosts:
                if all(at[vm] != host.id for vm in moving) and self.may_go(at, moving, host.id):
                    after = tuple(host.id if vm in moving else at[vm] for vm in range(len(at)))
                    yield after, len(moving)

    def may_go(self, at: Assignment, moving: frozenset[int], host: str) -> bool:
        used = sum(vm.memory_mb for number, vm in enumerate(self.vms) if at[number] == host)
        if used + sum(self.vms[vm].memory_mb for vm in moving) > self.total[host]:
            return False
        if next(known for known in self.hosts if known.id == host).status != "up":
            return False
        staying = [vm for vm in range(len(at)) if vm not in moving]
        return all(self.one_may_go(at, vm, host, staying) for vm in moving) and not any(
            len(group & moving) > 1 for group in self.negative
        )

    def one_may_go(self, at: Assignment, vm: int, host: str, staying: list[int]) -> bool:
        known = self.vms[vm]
        source = next(place for place in self.hosts if place.id == at[vm])
        if not known.migratable or known.hosted_engine or known.status != "up" or source.status != "up":
            return False
        for vms, hosts, positive in self.listed:
            if known.id in vms and (host in hosts) != positive:
                return False
        for group in self.negative:
            if vm in group and any(other in group and at[other] == host for other in staying):
                return False
        direct = {
            at[self.index[other]]
            for group in self.positive
            if known.id in group
            for other in group
            if other != known.id and self.index.get(other) in staying
        }
        tied = {at[other] for group in self.unified if vm in group for other in group if other in staying}
        return (not direct or host in direct) and (not tied or host in tied)
