"""All ends of a tiny cluster, judged by the definitions of the rules alone, however they are reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, product

from tests.builders import needed_mb
from tests.placement.planning.brute_force import Assignment, BruteForce, Rule

#: Violated hard rules, violated soft rules from the highest priority down, VMs that moved.
Value = tuple[int, tuple[int, ...], int]


class Ends(BruteForce):
    """Of one cluster without labels, whose VMs may all be migrated unless they are said not to be."""

    def best_end(self) -> Value:
        """The least value of all legal ends."""
        hosts = [host.id for host in self.hosts]
        choices = [hosts if vm.migratable else [vm.host or ""] for vm in self.vms]
        return min(self.value(end) for end in product(*choices) if self.why_illegal(end) is None)

    def value(self, end: Assignment) -> Value:
        hard, *soft = self.score(end)
        moved = sum(now != before for now, before in zip(end, self.start, strict=True))
        return hard, tuple(soft), moved

    def pairs(self, end: Assignment) -> int:
        """Pairs of VMs on one host that a hard rule wants apart which is violated at the start."""
        crowded = [rule.vms for rule in self._hard("apart") if rule.violated(self.start)]
        return sum(end[one] == end[other] for vms in crowded for one, other in combinations(vms, 2))

    def why_illegal(self, end: Assignment) -> str | None:
        for rule in self._hard("on", "off"):
            for vm in rule.vms:
                if end[vm] != self.start[vm] and (end[vm] in rule.hosts) != (rule.kind == "on"):
                    return f"the engine refuses {self.vms[vm].id} on {end[vm]}"
        for host, total in self.total.items():
            if sum(needed_mb(vm) for vm, now in zip(self.vms, end, strict=True) if now == host) > total:
                return f"{host} is overfull"
        lost = [rule for rule in self.rules if rule.hard and rule.violated(end)]
        lost = [rule for rule in lost if not rule.violated(self.start)]
        return f"{lost} were satisfied" if lost else None

    def after(self, where: Mapping[str, str]) -> Assignment:
        return tuple(where.get(vm.id, vm.host or "") for vm in self.vms)

    def _hard(self, *kinds: str) -> Iterator[Rule]:
        return (rule for rule in self.rules if rule.hard and rule.kind in kinds)
