"""Which affinity groups of a cluster contradict one another.

Conflicts by the engine's types, each reported only if it matters: what the engine reports although it can
be satisfied is left out, and what two hard groups make impossible blocks saving (docs/rules.md, C1 to C4).

Whether all hard groups can be satisfied together, and which smallest set of them cannot: all members count,
those that are down too, and all hosts of the cluster, whatever their status. The question is about the
rules, not about today. Positive VM groups put their VMs on one host; negative ones on different hosts; host
rules, legacy labels and pinning say which hosts; and VMs held together must fit into the memory of a host
(C4 to C6).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import combinations_with_replacement

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.model.snapshot import grouped
from ovirt_placement.rules.affinity.constraints import asks_of_groups, block_of, by_vm, gather
from ovirt_placement.rules.affinity.groups import (
    UnifiedGroup,
    listed_hosts,
    members,
    numbers_by_vm,
    tied_parts,
    unify,
)
from ovirt_placement.rules.elements.assignment import (
    Block,
    Budget,
    BudgetSpentError,
    Resources,
    can_all_differ,
    can_be_coloured,
)
from ovirt_placement.rules.elements.rule import Ask, Contradiction, Judgement, Same


class ConflictType(StrEnum):
    """The engine's names."""

    HARD_POSITIVE_AND_NEGATIVE_HOSTS = "VM_TO_HOST_CONFLICT_IN_ENFORCING_POSITIVE_AND_NEGATIVE_AFFINITY"
    POSITIVE_AND_NEGATIVE_HOSTS = "VM_TO_HOST_CONFLICT_IN_POSITIVE_AND_NEGATIVE_AFFINITY"
    HOSTS_AGAINST_TOGETHER = "VM_TO_HOST_CONFLICTS_POSITIVE_VM_TO_VM_AFFINITY"
    HOSTS_AGAINST_APART = "VM_TO_HOST_CONFLICTS_NEGATIVE_VM_TO_VM_AFFINITY"
    NO_COMMON_HOST = "NON_INTERSECTING_POSITIVE_HOSTS_AFFINITY_CONFLICTS"
    TOGETHER_AGAINST_APART = "VM_TO_VM_AFFINITY_CONFLICTS"


class Conflict(Record, frozen=True):
    """Groups that ask for opposite things, and of which VMs on which hosts; all ids, sorted."""

    type: ConflictType
    groups: tuple[str, ...]
    vms: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    #: Of `vms`, those that a negative group keeps apart; only where positive and negative VM groups clash.
    negative_vms: tuple[str, ...] = ()
    #: Whether the groups may be saved nevertheless, with a warning.
    savable: bool = True


class _Flat(Record, frozen=True):
    """A group with its members and hosts resolved."""

    group: AffinityGroup
    vms: frozenset[str]
    hosts: frozenset[str]


def find_conflicts(snapshot: Snapshot, cluster_id: str) -> tuple[Conflict, ...]:
    """All conflicts among the groups of a cluster, in the engine's order; legacy labels take no part.

    The engine lets all of them in through its single-member commands and through labels, the ones that
    it would not save too. It reports each type once, with everything merged; but where VMs are to run
    together and apart, each negative group with each unified positive one.
    """
    clashes = find_clashes(snapshot, cluster_id)
    single = [one for one in clashes if one.type is ConflictType.TOGETHER_AGAINST_APART]
    return (*merged(one for one in clashes if one.type is not ConflictType.TOGETHER_AGAINST_APART), *single)


def find_clashes(snapshot: Snapshot, cluster_id: str) -> tuple[Conflict, ...]:
    """The same, each by itself: only the groups that clash with one another stand in one."""
    groups = [group for group in snapshot.affinity_groups if group.cluster == cluster_id]
    vms_of, hosts_of = members(snapshot), listed_hosts(snapshot)
    flat = [_Flat(group, frozenset(vms_of[group.id]), hosts_of[group.id]) for group in groups]
    on_hosts = [one for one in flat if one.group.hosts_rule.enabled and one.hosts]
    positives = [one for one in on_hosts if one.group.hosts_rule.positive]
    negatives = [one for one in on_hosts if not one.group.hosts_rule.positive]
    # The positive host groups of each VM that has any.
    wanting = grouped((vm, one) for one in positives for vm in one.vms)
    unified = unify(snapshot, groups)
    return (
        *_opposite_hosts(positives, negatives),
        *_hosts_against_together(positives, negatives, unified),
        *_hosts_against_apart(snapshot, cluster_id, flat, wanting),
        *_no_common_host(wanting),
        *_together_against_apart(snapshot, flat, unified),
    )


def merged(clashes: Iterable[Conflict]) -> tuple[Conflict, ...]:
    """One conflict of each type, in the order of the first of each; savable if all are."""
    return tuple(
        Conflict(
            conflict_type,
            _union(one.groups for one in found),
            _union(one.vms for one in found),
            _union(one.hosts for one in found),
            _union(one.negative_vms for one in found),
            savable=all(one.savable for one in found),
        )
        for conflict_type, found in grouped((one.type, one) for one in clashes).items()
    )


def _union(ids: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted(set().union(*ids)))


def _clash(
    conflict_type: ConflictType,
    groups: Iterable[_Flat],
    vms: Iterable[str],
    hosts: Iterable[str],
    *,
    savable: bool = True,
) -> Conflict:
    ids = sorted({one.group.id for one in groups})
    return Conflict(conflict_type, tuple(ids), tuple(sorted(vms)), tuple(sorted(hosts)), savable=savable)


def _opposite_hosts(positives: Sequence[_Flat], negatives: Sequence[_Flat]) -> Iterator[Conflict]:
    """A VM that one group wants on a host and another off it: first where both are hard, then all."""
    negatives_of = numbers_by_vm(one.vms for one in negatives)
    opposite = [
        (positive, negatives[at])
        for positive in positives
        for at in sorted(_near(positive.vms, negatives_of))
        if positive.hosts & negatives[at].hosts
    ]
    hard = [pair for pair in opposite if all(one.group.hosts_rule.enforcing for one in pair)]
    for conflict_type, pairs, savable in (
        (ConflictType.HARD_POSITIVE_AND_NEGATIVE_HOSTS, hard, False),
        (ConflictType.POSITIVE_AND_NEGATIVE_HOSTS, opposite, True),
    ):
        for one, other in pairs:
            yield _clash(
                conflict_type, (one, other), one.vms & other.vms, one.hosts & other.hosts, savable=savable
            )


def _hosts_against_together(
    positives: Sequence[_Flat], negatives: Sequence[_Flat], unified: Sequence[UnifiedGroup]
) -> Iterator[Conflict]:
    """VMs to run together, of which one is wanted on a host and another off it."""
    unified_of = numbers_by_vm(one.vms for one in unified)
    negatives_of = numbers_by_vm(one.vms for one in negatives)
    negatives_of_unified = [_near(one.vms, negatives_of) for one in unified]
    for positive in positives:
        near = ((other, at) for at in _near(positive.vms, unified_of) for other in negatives_of_unified[at])
        for other, at in sorted(near):
            negative, one = negatives[other], unified[at]
            vms = positive.vms.intersection(one.vms) | negative.vms.intersection(one.vms)
            shared = positive.hosts & negative.hosts
            if shared and len(vms) > 1:
                yield _clash(ConflictType.HOSTS_AGAINST_TOGETHER, (positive, negative), vms, shared)


def _hosts_against_apart(
    snapshot: Snapshot, cluster_id: str, flat: Sequence[_Flat], wanting: Mapping[str, Sequence[_Flat]]
) -> Iterator[Conflict]:
    """VMs to keep apart that are wanted on too few hosts to differ."""
    everywhere = frozenset(host.id for host in snapshot.hosts_of_cluster.get(cluster_id, ()))
    for apart in _negative(flat):
        # By the positive host groups that they are in, the VMs that are in any.
        wanted = sorted(wanting.keys() & apart.vms)
        alike = grouped((tuple(one.group.id for one in wanting[vm]), vm) for vm in wanted)
        common = {groups: _common_hosts(wanting[vms[0]]) for groups, vms in alike.items()}
        allowed = {vm: common[groups] for groups, vms in alike.items() for vm in vms}
        # Hosts of other clusters, which a label can bring into a group, count as well.
        hosts = everywhere.union(*common.values())
        homes = [allowed.get(vm, everywhere) for vm in apart.vms]
        if len(homes) <= len(hosts) and can_all_differ(homes):
            continue
        for one, other in combinations_with_replacement(alike, 2):
            shared = common[one] & common[other]
            vms = alike[one] if one == other else (*alike[one], *alike[other])
            if shared and len(vms) > 1:
                groups = (apart, *wanting[alike[one][0]], *wanting[alike[other][0]])
                yield _clash(ConflictType.HOSTS_AGAINST_APART, groups, vms, shared)


def _no_common_host(wanting: Mapping[str, Sequence[_Flat]]) -> Iterator[Conflict]:
    """A VM whose positive host groups have no host in common."""
    for vm, own in wanting.items():
        if not _common_hosts(own):
            hosts = frozenset[str]().union(*(one.hosts for one in own))
            hard = [one.hosts for one in own if one.group.hosts_rule.enforcing]
            savable = not hard or bool(frozenset.intersection(*hard))
            yield _clash(ConflictType.NO_COMMON_HOST, own, (vm,), hosts, savable=savable)


def _together_against_apart(
    snapshot: Snapshot, flat: Sequence[_Flat], unified: Sequence[UnifiedGroup]
) -> Iterator[Conflict]:
    """VMs that one group keeps apart and others, in a chain if need be, can be satisfied together.

    One for each negative group and unified positive group; it blocks saving if the negative group and
    one that holds together are hard (C1).
    """
    unified_of = numbers_by_vm(one.vms for one in unified)
    for apart in _negative(flat):
        for together in (unified[at] for at in sorted(_near(apart.vms, unified_of))):
            both = apart.vms.intersection(together.vms)
            if len(both) > 1:
                holding = (snapshot.group_by_id[group].vms_rule for group in together.groups)
                blocks = apart.group.vms_rule.enforcing and any(rule.enforcing for rule in holding)
                yield Conflict(
                    ConflictType.TOGETHER_AGAINST_APART,
                    (apart.group.id,),
                    tuple(sorted(together.vms)),
                    negative_vms=tuple(sorted(both)),
                    savable=not blocks,
                )


def _negative(flat: Iterable[_Flat]) -> list[_Flat]:
    """The negative VM groups."""
    return [one for one in flat if one.group.vms_rule.enabled and not one.group.vms_rule.positive]


def _near(vms: Iterable[str], numbers: Mapping[str, Sequence[int]]) -> set[int]:
    """The numbers of the groups that have any of these VMs."""
    return {at for vm in vms for at in numbers.get(vm, ())}


def _common_hosts(groups: Sequence[_Flat]) -> frozenset[str]:
    return frozenset.intersection(*(one.hosts for one in groups))


#: Steps for a whole cluster: one for each group looked at, and those of each search.
DEFAULT_BUDGET = 500_000


def judge_groups(snapshot: Snapshot, cluster_id: str, steps: int = DEFAULT_BUDGET) -> Judgement:
    """Judge the hard groups of a cluster: of each part, groups that share VMs, one contradiction at most."""
    hosts = {
        host.id: Resources(memory=host.memory_mb) for host in snapshot.hosts_of_cluster.get(cluster_id, ())
    }
    budget = Budget(steps)

    def satisfiable(groups: Sequence[Ask]) -> bool:
        budget.spend(len(groups))
        return can_be_coloured(list(_blocks(snapshot, groups)), hosts, budget)

    contradictions: list[Contradiction] = []
    unknown: list[tuple[Ask, ...]] = []
    for part in tied_parts(asks_of_groups(snapshot).get(cluster_id, ())):
        try:
            if not satisfiable(part):
                contradictions.append(_smallest(part, satisfiable, budget))
        except BudgetSpentError:
            unknown.append(part)
    return Judgement(tuple(contradictions), tuple(unknown))


def _smallest(
    groups: Sequence[Ask], satisfiable: Callable[[Sequence[Ask]], bool], budget: Budget
) -> Contradiction:
    """The smallest set of groups that cannot be satisfied; a minimal one if the budget ends.

    Leaving out one group after the other that is not needed gives a minimal set; then every smaller set of
    groups that hang together is tried. Raises `BudgetSpentError` if the budget does not even allow the first.
    """
    found = list(groups)
    for group in groups:
        others = [one for one in found if one is not group]
        if not satisfiable(others):
            found = others
    proven = True
    try:
        smaller = (chosen for size in range(1, len(found)) for chosen in _connected(groups, size, budget))
        found = next((chosen for chosen in smaller if not satisfiable(chosen)), found)
    except BudgetSpentError:
        proven = False
    return Contradiction(tuple(found), proven)


def _blocks(snapshot: Snapshot, groups: Sequence[Ask]) -> Iterator[Block]:
    """All VMs of the groups, with what these and pinning leave them, and the memory that they must have.

    Of VMs held together, that is; a VM by itself is not the groups' concern.
    """
    unified = unify(snapshot, (snapshot.group_by_id[one.id] for one in groups if Same() in one.forms))
    asks = by_vm(groups)
    for vms in gather(asks, {vm: one for one in unified for vm in one.vms}):
        memory_mb = sum(snapshot.vm_by_id[vm].guaranteed_mb for vm in vms) if len(vms) > 1 else 0
        yield block_of(snapshot, vms, asks, Resources(memory=memory_mb))


def _connected(groups: Sequence[Ask], size: int, budget: Budget) -> Iterator[list[Ask]]:
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
