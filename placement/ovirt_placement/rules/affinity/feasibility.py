"""Whether all hard groups of a cluster can hold together at all, and which smallest set of them cannot.

All members count, those that are down too, and all hosts of the cluster, whatever their status: the
question is about the rules, not about today. Positive VM groups put their VMs on one host; negative
ones on different hosts; host rules, legacy labels and pinning say which hosts; and VMs held together
must fit into the memory of a host (docs/rules.md, C4 to C6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.host_groups import configured, legacy_groups, listed_hosts
from ovirt_placement.rules.affinity.membership import members
from ovirt_placement.rules.solving.budget import Budget, BudgetSpentError
from ovirt_placement.rules.solving.colouring import Vertex, can_be_colored
from ovirt_placement.rules.verdict import Struct

#: Steps for a whole cluster: one for each group looked at, and those of each search.
DEFAULT_BUDGET = 500_000


class Contradiction(Struct, frozen=True):
    """Hard groups that cannot hold together, though any of them could be left out to make the rest hold."""

    #: Ids of affinity groups, or of legacy labels.
    groups: tuple[str, ...]
    vms: tuple[str, ...]
    #: Whether it is proven that no smaller set of these and the groups they touch is contradictory.
    smallest: bool


class Feasibility(Struct, frozen=True):
    """What is proven about the hard groups of a cluster."""

    #: One for each part of the cluster (groups that share VMs) that cannot hold.
    contradictions: tuple[Contradiction, ...]
    #: Parts for which the work budget ended before an answer, as ids of their groups.
    unknown: tuple[tuple[str, ...], ...]

    @property
    def feasible(self) -> bool | None:
        """Whether all can hold together; None if that is not known."""
        return False if self.contradictions else None if self.unknown else True


def judge_groups(snapshot: Snapshot, cluster_id: str, steps: int = DEFAULT_BUDGET) -> Feasibility:
    """Judge the hard groups of a cluster, each part of it by itself."""
    problem = _Problem(snapshot, cluster_id)
    budget = Budget(steps)
    contradictions: list[Contradiction] = []
    unknown: list[tuple[str, ...]] = []
    for part in problem.parts():
        try:
            if not problem.holds(part, budget):
                contradictions.append(problem.smallest(part, budget))
        except BudgetSpentError:
            unknown.append(tuple(group.id for group in part))
    return Feasibility(tuple(contradictions), tuple(unknown))


class _Problem:
    def __init__(self, snapshot: Snapshot, cluster_id: str) -> None:
        self._snapshot = snapshot
        self._hosts = snapshot.hosts_of_cluster.get(cluster_id, ())
        self._everywhere = frozenset(host.id for host in self._hosts)
        groups = (*snapshot.affinity_groups, *legacy_groups(snapshot))
        self._groups = [group for group in groups if group.cluster == cluster_id and self._asks(group)]

    def _asks(self, group: AffinityGroup) -> bool:
        on_hosts = group.hosts_rule.hard and configured(self._snapshot, group)
        return bool(self._members(group)) and (group.vms_rule.hard or on_hosts)

    def _members(self, group: AffinityGroup) -> tuple[str, ...]:
        return members(self._snapshot).get(group.id, group.vms)

    def parts(self) -> Iterator[list[AffinityGroup]]:
        """Groups that are tied through common VMs: what one part asks concerns no other."""
        left = dict.fromkeys(range(len(self._groups)))
        of_vm = self._groups_of_vms(self._groups)
        while left:
            waiting = [next(iter(left))]
            found = []
            while waiting:
                number = waiting.pop()
                if number in left:
                    del left[number]
                    found.append(number)
                    waiting += [near for vm in self._members(self._groups[number]) for near in of_vm[vm]]
            yield [self._groups[number] for number in sorted(found)]

    def holds(self, groups: Sequence[AffinityGroup], budget: Budget) -> bool:
        """Whether the groups can hold together. Raises `BudgetSpentError`."""
        budget.spend(len(groups))
        vertices = self._vertices(groups)
        return vertices is not None and can_be_colored(vertices, budget)

    def smallest(self, groups: Sequence[AffinityGroup], budget: Budget) -> Contradiction:
        """The smallest set of the groups that cannot hold; a minimal one if the budget ends in the search.

        Leaving out one group after the other that is not needed gives a minimal set; then every
        smaller set of groups that hang together is tried. Raises `BudgetSpentError` if the budget does
        not even allow the first.
        """
        minimal = list(groups)
        for group in groups:
            others = [one for one in minimal if one is not group]
            if not self.holds(others, budget):
                minimal = others
        try:
            for size in range(1, len(minimal)):
                for chosen in self._connected(groups, size, budget):
                    if not self.holds(chosen, budget):
                        return self._contradiction(chosen, smallest=True)
        except BudgetSpentError:
            return self._contradiction(minimal, smallest=False)
        return self._contradiction(minimal, smallest=True)

    def _contradiction(self, groups: Sequence[AffinityGroup], *, smallest: bool) -> Contradiction:
        vms = dict.fromkeys(vm for group in groups for vm in self._members(group))
        return Contradiction(tuple(sorted(group.id for group in groups)), tuple(sorted(vms)), smallest)

    def _connected(
        self, groups: Sequence[AffinityGroup], size: int, budget: Budget
    ) -> Iterator[list[AffinityGroup]]:
        """All sets of so many groups that hang together: a minimal contradiction always does."""
        of_vm = self._groups_of_vms(groups)
        near = [{other for vm in self._members(group) for other in of_vm[vm]} for group in groups]
        seen: set[frozenset[int]] = set()
        waiting = [frozenset({number}) for number in reversed(range(len(groups)))]
        while waiting:
            chosen = waiting.pop()
            budget.spend()
            if len(chosen) == size:
                yield [groups[number] for number in sorted(chosen)]
                continue
            for number in sorted(set().union(*(near[one] for one in chosen)) - chosen):
                larger = chosen | {number}
                if larger not in seen:
                    seen.add(larger)
                    waiting.append(larger)

    def _groups_of_vms(self, groups: Sequence[AffinityGroup]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, group in enumerate(groups):
            for vm in self._members(group):
                found.setdefault(vm, []).append(number)
        return found

    def _vertices(self, groups: Sequence[AffinityGroup]) -> list[Vertex] | None:
        """VMs that go to one host as one vertex, with its hosts; None if two of them must not."""
        block_of = self._blocks(groups)
        apart: dict[int, set[str]] = {block: set() for block in block_of.values()}
        allowed = dict.fromkeys(block_of.values(), self._everywhere)
        for group in groups:
            blocks = Counter(block_of[vm] for vm in self._members(group))
            if group.vms_rule.hard and not group.vms_rule.positive:
                if any(together > 1 for together in blocks.values()):
                    return None
                for block in blocks:
                    apart[block].add(group.id)
            if group.hosts_rule.hard and configured(self._snapshot, group):
                listed = listed_hosts(self._snapshot, group)
                for block in blocks:
                    allowed[block] &= listed if group.hosts_rule.positive else self._everywhere - listed
        for vm, block in block_of.items():
            allowed[block] &= self._hosts_by_pinning(vm)
        for block, roomy in self._hosts_by_memory(block_of).items():
            allowed[block] &= roomy
        return [Vertex(allowed[block], frozenset(apart[block])) for block in allowed]

    def _blocks(self, groups: Sequence[AffinityGroup]) -> dict[str, int]:
        """The number of the block of each VM: those that positive groups tie together share one."""
        numbers = count()
        block_of: dict[str, int] = {}
        for group in groups:
            own = self._members(group)
            if group.vms_rule.hard and group.vms_rule.positive:
                merged = {block_of[vm] for vm in own if vm in block_of}
                block = next(numbers)
                block_of.update({vm: block for vm, old in block_of.items() if old in merged})
                block_of.update(dict.fromkeys(own, block))
            else:
                block_of.update({vm: next(numbers) for vm in own if vm not in block_of})
        return block_of

    def _hosts_by_pinning(self, vm_id: str) -> frozenset[str]:
        vm = self._snapshot.vm_by_id[vm_id]
        return frozenset(vm.pinned_hosts) if vm.pinned_hosts and not vm.migratable else self._everywhere

    def _hosts_by_memory(self, block_of: dict[str, int]) -> dict[int, frozenset[str]]:
        """Hosts whose whole memory holds the VMs of a block, where it holds more than one."""
        sizes = Counter(block_of.values())
        needs: Counter[int] = Counter()
        for vm, block in block_of.items():
            needs[block] += self._snapshot.vm_by_id[vm].guaranteed_mb
        return {
            block: frozenset(host.id for host in self._hosts if host.memory_mb >= needs[block])
            for block, size in sizes.items()
            if size > 1
        }
