"""Affinity groups: their members, which are one since they share members, and their priorities."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from ovirt_placement.lookups import once_for_members
from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.model.infrastructure import fixed_point
from ovirt_placement.model.record import Record
from ovirt_placement.model.snapshot import grouped
from ovirt_placement.rules.elements.placement import destinations
from ovirt_placement.rules.elements.ranks import KeyOrder
from ovirt_placement.rules.elements.verdict import ReasonKind


@once_for_members
def members(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Ids of a group's VMs that are in the group's cluster, by group id."""
    vms, group_vms = snapshot.vm_by_id, snapshot.group_vms
    return {
        group.id: tuple(vm for vm in group_vms[group.id] if vm in vms and vms[vm].cluster == group.cluster)
        for group in snapshot.affinity_groups
    }


@once_for_members
def groups_of(snapshot: Snapshot) -> Mapping[str, Sequence[AffinityGroup]]:
    """The groups that count a VM among their members, by VM id."""
    own = members(snapshot)
    return grouped((vm, group) for group in snapshot.affinity_groups for vm in own[group.id])


def groups_among(
    groups_of: Mapping[str, Sequence[AffinityGroup]], vms: Iterable[str]
) -> Iterable[AffinityGroup]:
    """The groups of any of some VMs, each once."""
    return {group.id: group for vm in vms for group in groups_of.get(vm, ())}.values()


@once_for_members
def listed_hosts(snapshot: Snapshot) -> dict[str, frozenset[str]]:
    """Ids of the hosts that a group lists, itself or by a label, by group id; and by that of a label."""
    by_label = {label.id: frozenset(label.hosts) for label in snapshot.affinity_labels}
    return by_label | {group: frozenset(listed) for group, listed in snapshot.group_hosts.items()}


class UnifiedGroup(Record, frozen=True):
    """VMs that positive groups tie together, in a chain if need be, and the ids of those groups."""

    vms: tuple[str, ...]
    groups: tuple[str, ...]


def unify(snapshot: Snapshot, groups: Iterable[AffinityGroup]) -> tuple[UnifiedGroup, ...]:
    """Merge enabled positive groups that share a VM; every other VM that is mentioned stays alone.

    VMs that are down take part and link; a group of one VM ties nothing, and stands nowhere. The caller
    chooses the groups: hard positive ones to place and enforce, all enabled ones to look for conflicts.
    """
    enabled = [group for group in groups if group.vms_rule.enabled]
    tied = [one for one in enabled if one.vms_rule.positive and len(members(snapshot)[one.id]) > 1]
    mentioned = [(vm,) for group in enabled for vm in members(snapshot)[group.id]]
    sets = connected([*(members(snapshot)[group.id] for group in tied), *mentioned])
    set_of = {vm: number for number, vms in enumerate(sets) for vm in vms}
    ids: list[list[str]] = [[] for _ in sets]
    for group in tied:
        ids[set_of[members(snapshot)[group.id][0]]].append(group.id)
    return tuple(UnifiedGroup(vms, tuple(ids[number])) for number, vms in enumerate(sets))


@once_for_members
def hard_positive_group_of(snapshot: Snapshot) -> dict[str, UnifiedGroup]:
    """What must run together, by VM id; a VM of no such group is not in it."""
    rules = ((group, group.vms_rule) for group in snapshot.affinity_groups)
    tied = (group for group, rule in rules if rule.hard and rule.positive)
    return {vm: unified for unified in unify(snapshot, tied) for vm in unified.vms}


def as_the_engine_unifies(groups: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The VMs of groups that make one, in the order in which the engine goes through their set.

    Each group makes a new `HashSet` of those that its VMs are in.

    Source: AffinityRulesUtils.getUnifiedPositiveAffinityGroups.
    """
    set_of: dict[str, KeyOrder] = {}
    merged = KeyOrder()
    for vms in groups:
        merged = KeyOrder()
        for vm in vms:
            existing = set_of.get(vm)
            if existing is not merged:
                for other in (vm,) if existing is None else existing.listed():
                    merged.put(other)
                    set_of[other] = merged
    return tuple(merged.listed())


def connected(sets: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """Connected components over shared members, all in the order of first mention."""
    component: dict[str, list[str]] = {}
    for one in sets:
        for member in one:
            first = component.setdefault(one[0], [one[0]])
            other = component.setdefault(member, [member])
            if first is not other:
                small, large = sorted((first, other), key=len)
                large.extend(small)
                component.update(dict.fromkeys(small, large))
    return [*grouped((id(whole), member) for member, whole in component.items()).values()]


class Tied(Protocol):
    """What is about some VMs, one at least."""

    @property
    def vms(self) -> tuple[str, ...]: ...


_Tied = TypeVar("_Tied", bound=Tied)


def tied_parts(some: Sequence[_Tied]) -> list[tuple[_Tied, ...]]:
    """Those that are tied through common VMs: what one part asks concerns no other."""
    part_of = {vm: at for at, vms in enumerate(connected(one.vms for one in some)) for vm in vms}
    return [*grouped((part_of[one.vms[0]], one) for one in some).values()]


def numbers_by_vm(groups: Iterable[Iterable[str]]) -> dict[str, tuple[int, ...]]:
    """Of each VM the numbers of its groups: few have any in common, and only these need be compared."""
    return grouped((vm, at) for at, vms in enumerate(groups) for vm in vms)


def chained_peers(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    """The others of a VM's unified hard positive group; none if all of them are in its own groups."""
    unified = hard_positive_group_of(snapshot).get(vm)
    if unified is None:
        return ()
    direct = {
        peer
        for group in groups_of(snapshot).get(vm, ())
        if group.vms_rule.hard and group.vms_rule.positive
        for peer in members(snapshot)[group.id]
    }
    if direct.issuperset(unified.vms):
        return ()
    return tuple(peer for peer in unified.vms if peer != vm)


def parting_hosts(snapshot: Snapshot, vm: str, hosts: Sequence[str]) -> frozenset[str]:
    """Those of the hosts that would tear a VM from the peers of its peers; none if these are on no host."""
    there = peers_on(snapshot, hosts, chained_peers(snapshot, vm))
    return frozenset(hosts).difference(there) if there else frozenset()


def peers_on(snapshot: Snapshot, hosts: Sequence[str], peers: tuple[str, ...]) -> Counter[str]:
    """How many of the peers are on each candidate host, or to be there."""
    candidates = frozenset(hosts) if peers else frozenset()
    return Counter(host for peer in peers for host in destinations(snapshot, peer) if host in candidates)


GROUP_VIOLATED_HERE = ReasonKind("group_violated_here", "violates {group} of priority {number:g}")
#: A negative group, with the first of its members there.
GROUP_VIOLATED_BY_VM = ReasonKind(
    "group_violated_here", "violates {group} of priority {number:g}: VM {vm} is here"
)


def worst_first(violated: Iterable[AffinityGroup]) -> tuple[int, ...]:
    """The priorities of violated groups from the highest down, as the engine compares hosts by them."""
    return tuple(sorted((fixed_point(group.priority) for group in violated), reverse=True))
