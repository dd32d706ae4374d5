"""Affinity groups: who belongs to them, whether they are violated now, and how they contradict each other.

Source: the engine's AffinityGroupsQueryBase ("violated"), AffinityRulesUtils, AffinityRulesConflicts and
SchedulingManager (positiveAffinityClosure), as they behave.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations, product
from typing import TypeVar

import msgspec

from ovirt_placement import model
from ovirt_simulator.core.entities import AffinityGroup, Vm
from ovirt_simulator.core.messages import EventCode, EventType
from ovirt_simulator.core.state import State

Label = TypeVar("Label", bound=model.AffinityLabel)

#: The engine keeps priorities as whole numbers of this part of one.
_PRIORITY_STEPS = 10_000_000


def stored_priority(priority: float) -> int:
    """Give a group's priority as the engine keeps and compares it (AffinityGroup.setPriorityFromDouble)."""
    return math.floor(priority * _PRIORITY_STEPS + 0.5)


def shown_priority(priority: float) -> float:
    """Give the priority as the engine shows it again."""
    return stored_priority(priority) / _PRIORITY_STEPS


def member_vms(state: State, group: AffinityGroup) -> tuple[Vm, ...]:
    """Give the group's VMs, those of its VM labels included, each once."""
    ids = dict.fromkeys(group.vms)
    for label in group.vm_labels:
        ids.update(dict.fromkeys(state.labels[label].vms))
    return tuple(state.vms[vm_id] for vm_id in ids)


def member_hosts(state: State, group: AffinityGroup) -> frozenset[str]:
    """Give the ids of the group's hosts, those of its host labels included."""
    ids = set(group.hosts)
    for label in group.host_labels:
        ids.update(state.labels[label].hosts)
    return frozenset(ids)


def is_broken(state: State, group: AffinityGroup) -> bool:
    """Return whether running members break one of the group's rules, enforcing or not.

    A migrating VM counts where it runs; a positive host rule without hosts is violated by every running VM.
    """
    places = [vm.host for vm in member_vms(state, group) if vm.host is not None]
    if group.vms_rule.enabled:
        distinct = len(set(places))
        if group.vms_rule.positive and distinct > 1:
            return True
        if not group.vms_rule.positive and distinct < len(places):
            return True
    if group.hosts_rule.enabled:
        hosts = member_hosts(state, group)
        return any((place not in hosts) == group.hosts_rule.positive for place in places)
    return False


def legacy_labels(labels: Iterable[Label], cluster: model.Cluster) -> list[Label]:
    """Give the labels that clusters below 4.4 take for hard positive VM-to-host groups."""
    if tuple(map(int, cluster.compatibility.split("."))) >= (4, 4):
        return []
    return [label for label in labels if label.implicit]


def scheduled_together(state: State, vm_ids: Iterable[str]) -> list[tuple[str, ...]]:
    """Group VMs as they are scheduled: by what ties them, over VMs that are not given, too."""
    tied: dict[str, dict[str, frozenset[str]]] = {}
    groups: dict[tuple[str, frozenset[str]], list[str]] = defaultdict(list)
    for vm_id in dict.fromkeys(vm_ids):
        cluster_id = state.vms[vm_id].cluster
        if cluster_id not in tied:
            tied[cluster_id] = _tied(state, cluster_id)
        groups[cluster_id, tied[cluster_id].get(vm_id, frozenset({vm_id}))].append(vm_id)
    return [tuple(group) for group in groups.values()]


def closure(state: State, vm_id: str) -> tuple[str, ...]:
    """Give the VMs on its host that hard positive groups of its cluster tie to this one, itself first.

    Those elsewhere are left where they are (computeVmAffinityClosure of MigrateMultipleVmsCommand).
    """
    vm = state.vms[vm_id]
    tied = _tied(state, vm.cluster).get(vm_id, frozenset()) - {vm_id}
    return (vm_id, *sorted(peer for peer in tied if vm.runs and state.vms[peer].host == vm.host))


def _tied(state: State, cluster_id: str) -> dict[str, frozenset[str]]:
    """By VM, those that hard positive groups of a cluster tie to it, where its policy has their filter."""
    policy = state.policies[state.clusters[cluster_id].policy_id]
    units = (state.units[entry.unit] for entry in policy.filters)
    if all(unit.name != "VmAffinityGroups" or not unit.internal for unit in units):
        return {}
    groups = [g for g in state.groups_of(cluster_id) if g.vms_rule.hard and g.vms_rule.positive]
    joined = _joined(frozenset(vm.id for vm in member_vms(state, group)) for group in groups)
    return {vm_id: together for together in joined for vm_id in together}


def _joined(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    joined: dict[str, frozenset[str]] = {}
    for one in sets:
        whole = one.union(*(joined[member] for member in one if member in joined))
        joined.update(dict.fromkeys(whole, whole))
    return list(dict.fromkeys(joined.values()))


class Flat(msgspec.Struct, frozen=True):
    """A group with its members, labels resolved."""

    name: str
    vms: frozenset[str]
    hosts: frozenset[str]
    #: True positive, False negative, None disabled.
    vm_polarity: bool | None
    #: The same for the host rule.
    host_polarity: bool | None
    hosts_enforcing: bool


class Conflict(msgspec.Struct, frozen=True):
    """One kind of conflict with all that takes part in it."""

    #: The engine saves the group nevertheless where this is a warning.
    code: EventType
    groups: frozenset[str]
    vms: frozenset[str]
    hosts: frozenset[str] = frozenset()
    negative_vms: frozenset[str] = frozenset()


def flat(state: State, group: AffinityGroup) -> Flat:
    """Resolve the group's labels."""
    return Flat(
        name=group.name,
        vms=frozenset(vm.id for vm in member_vms(state, group)),
        hosts=member_hosts(state, group),
        vm_polarity=group.vms_rule.positive if group.vms_rule.enabled else None,
        host_polarity=group.hosts_rule.positive if group.hosts_rule.enabled else None,
        hosts_enforcing=group.hosts_rule.enforcing,
    )


def find_conflicts(groups: Sequence[Flat]) -> list[Conflict]:
    """Give the conflicts in the engine's order; each of the host kinds at most once, all merged."""
    host_groups = [group for group in groups if group.host_polarity is not None and group.hosts]
    # Soft groups join VMs, too.
    unified = _joined(group.vms for group in groups if group.vm_polarity)
    drawing = [group for group in host_groups if group.host_polarity]
    both = list(product(drawing, [group for group in host_groups if not group.host_polarity]))
    hard = [(one, other) for one, other in both if one.hosts_enforcing and other.hosts_enforcing]
    found: dict[EventType, Iterator[_Part]] = {
        EventCode.VM_TO_HOST_CONFLICT_IN_ENFORCING_POSITIVE_AND_NEGATIVE_AFFINITY: _opposite_hosts(hard),
        EventCode.VM_TO_HOST_CONFLICT_IN_POSITIVE_AND_NEGATIVE_AFFINITY: _opposite_hosts(both),
        EventCode.VM_TO_HOST_CONFLICTS_POSITIVE_VM_TO_VM_AFFINITY: _hosts_against_positive(both, unified),
        EventCode.VM_TO_HOST_CONFLICTS_NEGATIVE_VM_TO_VM_AFFINITY: _hosts_against_negative(groups),
        EventCode.NON_INTERSECTING_POSITIVE_HOSTS_AFFINITY_CONFLICTS: _disjoint_positive_hosts(drawing),
    }
    merged = [_merged(code, parts) for code, parts in found.items()]
    return [one for one in merged if one is not None] + _vms_against_vms(groups, unified)


#: Groups, VMs and hosts that take part in a conflict.
_Part = tuple[Iterable[Flat], Iterable[str], Iterable[str]]


def _merged(code: EventType, parts: Iterable[_Part]) -> Conflict | None:
    groups, vms, hosts = set[str](), set[str](), set[str]()
    for of_groups, of_vms, of_hosts in parts:
        groups.update(group.name for group in of_groups)
        vms.update(of_vms)
        hosts.update(of_hosts)
    return Conflict(code, frozenset(groups), frozenset(vms), frozenset(hosts)) if groups else None


def _opposite_hosts(pairs: Iterable[tuple[Flat, Flat]]) -> Iterator[_Part]:
    """Find positive and negative host groups that share a VM and a host."""
    for positive, negative in pairs:
        vms, hosts = positive.vms & negative.vms, positive.hosts & negative.hosts
        if vms and hosts:
            yield (positive, negative), vms, hosts


def _hosts_against_positive(
    pairs: Iterable[tuple[Flat, Flat]], unified: Sequence[frozenset[str]]
) -> Iterator[_Part]:
    """Find VMs that must be together, of which one is drawn to a host and another kept from it."""
    for positive, negative in pairs:
        hosts = positive.hosts & negative.hosts
        for together in unified:
            drawn, kept = positive.vms & together, negative.vms & together
            if hosts and drawn and kept and len(drawn | kept) > 1:
                yield (positive, negative), drawn | kept, hosts


def _hosts_against_negative(groups: Sequence[Flat]) -> Iterator[_Part]:
    """Find VMs that must be apart, but are drawn to a common host.

    What draws the second of a pair is groups that the first is not in. The engine tries each pair both ways,
    and names every positive host group that there is.
    """
    positive = [group for group in groups if group.host_polarity]
    for apart in groups:
        if apart.vm_polarity is not False:
            continue
        for first, second in permutations(apart.vms, 2):
            of_first = [group for group in positive if first in group.vms]
            of_second = [group for group in positive if second in group.vms and first not in group.vms]
            hosts = _all_hosts(of_first) & _all_hosts(of_second)
            if hosts:
                yield (apart, *positive), (first, second), hosts


def _disjoint_positive_hosts(groups: Sequence[Flat]) -> Iterator[_Part]:
    """Find VMs in two positive host groups whose hosts differ at all."""
    for one, other in combinations(groups, 2):
        vms, hosts = one.vms & other.vms, one.hosts ^ other.hosts
        if vms and hosts:
            yield (one, other), vms, hosts


def _vms_against_vms(groups: Sequence[Flat], unified: Sequence[frozenset[str]]) -> list[Conflict]:
    """Find VMs that must be apart and, by other groups of any kind, together."""
    code = EventCode.VM_TO_VM_AFFINITY_CONFLICTS
    return [
        Conflict(code, frozenset({group.name}), together, frozenset(), group.vms & together)
        for group in groups
        if group.vm_polarity is False
        for together in unified
        if len(group.vms & together) > 1
    ]


def _all_hosts(groups: Iterable[Flat]) -> frozenset[str]:
    return frozenset(host for group in groups for host in group.hosts)
