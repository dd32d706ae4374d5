"""Whether all hard groups of a cluster can be satisfied together, and which smallest set of them cannot.

All members count, those that are down too, and all hosts of the cluster, whatever their status: the
question is about the rules, not about today. Positive VM groups put their VMs on one host; negative
ones on different hosts; host rules, legacy labels and pinning say which hosts; and VMs held together
must fit into the memory of a host (docs/rules.md, C4 to C6).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.rules.affinity.constraints import Binding, bindings, block_of, by_vm, gather
from ovirt_placement.rules.affinity.groups import numbers_by_vm, tied_parts, unify
from ovirt_placement.rules.elements.assignment import (
    NOTHING,
    Block,
    Budget,
    BudgetSpentError,
    Hosts,
    Resources,
    can_all_differ,
    homes_of,
)
from ovirt_placement.rules.elements.constraints import Same

#: The colours that are open to each block, by its number.
_Open = Mapping[int, AbstractSet[str]]


def can_be_coloured(blocks: Sequence[Block], hosts: Hosts, budget: Budget) -> bool:
    """Whether all blocks can be coloured at once; exact.

    A block with more colours than rivals can always be coloured last and is set aside. What is left is
    searched, the block with the fewest colours first, and given up where blocks that are all apart have
    too few colours. Raises `BudgetSpentError`.
    """
    colours = homes_of(blocks, hosts)
    if not all(colours):
        return False
    rivals = _rivals(blocks)
    core = _core(colours, rivals)
    all_apart = list(_by_tag(blocks, core).values())
    return _search({number: colours[number] for number in core}, rivals, all_apart, budget)


def _rivals(blocks: Sequence[Block]) -> list[AbstractSet[int]]:
    """Which blocks each must be apart from, itself among them; the same set for those with the same tags."""
    by_tag = _by_tag(blocks, range(len(blocks)))
    of_tags = {
        tags: frozenset(number for tag in tags for number in by_tag[tag])
        for tags in {block.apart for block in blocks}
    }
    return [of_tags[block.apart] for block in blocks]


def _by_tag(blocks: Sequence[Block], numbers: Iterable[int]) -> dict[str, list[int]]:
    """Which blocks, of those with these numbers, are all apart from each other, by the tag that says so."""
    found: dict[str, list[int]] = {}
    for number in numbers:
        for tag in blocks[number].apart:
            found.setdefault(tag, []).append(number)
    return found


def _core(colours: Sequence[AbstractSet[str]], rivals: Sequence[AbstractSet[int]]) -> list[int]:
    """What is left when the blocks that can always be coloured last are taken away, in turn."""
    near = [len(others) for others in rivals]
    left = {number for number, own in enumerate(colours) if near[number] > len(own)}
    easy = [number for number in range(len(colours)) if number not in left]
    while easy:
        for other in rivals[easy.pop()] & left:
            near[other] -= 1
            if near[other] <= len(colours[other]):
                left.discard(other)
                easy.append(other)
    return sorted(left)


def _search(
    colours: _Open, rivals: Sequence[AbstractSet[int]], all_apart: Sequence[Sequence[int]], budget: Budget
) -> bool:
    """Try every way to colour what is left; each step colours one block and narrows its rivals."""
    waiting = [colours]
    while waiting:
        left = waiting.pop()
        budget.spend(1 + len(left))
        if not left:
            return True
        if not all(can_all_differ([left[one] for one in blocks if one in left]) for blocks in all_apart):
            continue
        number = min(left, key=lambda one: (len(left[one]), one))
        for colour in sorted(left[number], reverse=True):
            rest = {
                other: own - {colour} if other in rivals[number] else own
                for other, own in left.items()
                if other != number
            }
            if all(rest.values()):
                waiting.append(rest)
    return False


#: Steps for a whole cluster: one for each group looked at, and those of each search.
DEFAULT_BUDGET = 500_000


class Contradiction(Record, frozen=True):
    """Hard groups that cannot be satisfied together, but all of them less any one can."""

    #: Ids of affinity groups, or of legacy labels.
    groups: tuple[str, ...]
    vms: tuple[str, ...]
    #: Whether it is proven that no smaller set of these and the groups they touch is contradictory.
    smallest: bool


class Feasibility(Record, frozen=True):
    """What is proven about the hard groups of a cluster."""

    #: One for each part of the cluster (groups that share VMs) that cannot be satisfied.
    contradictions: tuple[Contradiction, ...]
    #: Parts for which the work budget ended before an answer, as ids of their groups.
    unknown: tuple[tuple[str, ...], ...]

    @property
    def feasible(self) -> bool | None:
        """Whether all can be satisfied together; None if that is not known."""
        return False if self.contradictions else None if self.unknown else True


def judge_groups(snapshot: Snapshot, cluster_id: str, steps: int = DEFAULT_BUDGET) -> Feasibility:
    """Judge the hard groups of a cluster, each part of it by itself."""
    problem = _Problem(snapshot, cluster_id)
    budget = Budget(steps)
    contradictions: list[Contradiction] = []
    unknown: list[tuple[str, ...]] = []
    for part in tied_parts([one for one in bindings(snapshot) if one.group.cluster == cluster_id]):
        try:
            if not problem.holds(part, budget):
                contradictions.append(problem.smallest(part, budget))
        except BudgetSpentError:
            unknown.append(tuple(one.group.id for one in part))
    return Feasibility(tuple(contradictions), tuple(unknown))


class _Problem:
    def __init__(self, snapshot: Snapshot, cluster_id: str) -> None:
        self._snapshot = snapshot
        self._hosts = {
            host.id: Resources(memory=host.memory_mb)
            for host in snapshot.hosts_of_cluster.get(cluster_id, ())
        }

    def holds(self, groups: Sequence[Binding], budget: Budget) -> bool:
        """Whether the groups can be satisfied together. Raises `BudgetSpentError`."""
        budget.spend(len(groups))
        return can_be_coloured(self._blocks(groups), self._hosts, budget)

    def smallest(self, groups: Sequence[Binding], budget: Budget) -> Contradiction:
        """The smallest set of groups that cannot be satisfied; a minimal one if the budget ends.

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
                for chosen in _connected(groups, size, budget):
                    if not self.holds(chosen, budget):
                        return _contradiction(chosen, smallest=True)
        except BudgetSpentError:
            return _contradiction(minimal, smallest=False)
        return _contradiction(minimal, smallest=True)

    def _blocks(self, groups: Sequence[Binding]) -> list[Block]:
        """All VMs of the groups, with what these groups and pinning leave them."""
        unified = unify(self._snapshot, (one.group for one in groups if Same() in one.forms))
        unified_of = {vm: one for one in unified for vm in one.vms}
        binding = by_vm(groups)
        return [
            block_of(self._snapshot, vms, binding, self._need(vms)) for vms in gather(binding, unified_of)
        ]

    def _need(self, vms: tuple[str, ...]) -> Resources:
        """The memory that VMs held together are guaranteed; a VM by itself is not the groups' concern."""
        if len(vms) == 1:
            return NOTHING
        return Resources(memory=sum(self._snapshot.vm_by_id[vm].guaranteed_mb for vm in vms))


def _contradiction(groups: Sequence[Binding], *, smallest: bool) -> Contradiction:
    ids = sorted(one.group.id for one in groups)
    return Contradiction(tuple(ids), tuple(sorted({vm for one in groups for vm in one.vms})), smallest)


def _connected(groups: Sequence[Binding], size: int, budget: Budget) -> Iterator[list[Binding]]:
    """All sets of this many groups that hang together: a minimal contradiction always does."""
    of_vm = numbers_by_vm(one.vms for one in groups)
    near = [{other for vm in group.vms for other in of_vm[vm]} for group in groups]
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
