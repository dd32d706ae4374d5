"""Who belongs to an affinity group, and whether the group is violated now.

Source: the engine's AffinityGroupsQueryBase ("violated"), AffinityRulesUtils and SchedulingManager
(positiveAffinityClosure).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeVar

from ovirt_placement import model

from .built_in_policies import VM_AFFINITY_FILTER
from .entities import AffinityGroup, Vm
from .state import State

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


def unified_groups(state: State, cluster_id: str, vm_ids: Iterable[str]) -> list[tuple[str, ...]]:
    """Group VMs that hard positive groups of the cluster tie together, over VMs that are down too.

    Each of the VMs given is in exactly one of the groups; VMs not given only link.
    """
    peers = _hard_peers(state, cluster_id)
    group_of: dict[str, list[str]] = {}
    groups = []
    for vm_id in dict.fromkeys(vm_ids):
        if vm_id not in group_of:
            group: list[str] = []
            groups.append(group)
            group_of.update(dict.fromkeys(_reachable(peers, vm_id), group))
        group_of[vm_id].append(vm_id)
    return [tuple(group) for group in groups]


def scheduled_together(state: State, vm_ids: Iterable[str]) -> list[tuple[str, ...]]:
    """Group VMs as they are scheduled: by hard positive groups, where the policy has the filter of these."""
    by_cluster: dict[str, list[str]] = defaultdict(list)
    for vm_id in dict.fromkeys(vm_ids):
        by_cluster[state.vms[vm_id].cluster].append(vm_id)
    groups: list[tuple[str, ...]] = []
    for cluster_id, ids in by_cluster.items():
        ties = _filter_ties(state, cluster_id)
        groups += unified_groups(state, cluster_id, ids) if ties else [(vm_id,) for vm_id in ids]
    return groups


def closure(state: State, vm_id: str) -> tuple[str, ...]:
    """Give the VMs on its host that hard positive groups of its cluster tie to this one, itself first.

    Those elsewhere are left where they are (computeVmAffinityClosure of MigrateMultipleVmsCommand).
    """
    vm = state.vms[vm_id]
    if not _filter_ties(state, vm.cluster):
        return (vm_id,)
    tied = _reachable(_hard_peers(state, vm.cluster), vm_id) - {vm_id}
    return (vm_id, *sorted(peer for peer in tied if vm.runs and state.vms[peer].host == vm.host))


def _filter_ties(state: State, cluster_id: str) -> bool:
    policy = state.policies[state.clusters[cluster_id].policy_id]
    return any(entry.unit == VM_AFFINITY_FILTER for entry in policy.filters)


def _hard_peers(state: State, cluster_id: str) -> Mapping[str, set[str]]:
    peers: dict[str, set[str]] = defaultdict(set)
    for group in state.groups_of(cluster_id):
        if group.vms_rule.hard and group.vms_rule.positive:
            members = {vm.id for vm in member_vms(state, group)}
            for vm_id in members:
                peers[vm_id] |= members
    return peers


def _reachable(peers: Mapping[str, set[str]], start: str) -> set[str]:
    reached, frontier = {start}, [start]
    while frontier:
        fresh = peers.get(frontier.pop(), set()) - reached
        reached |= fresh
        frontier.extend(fresh)
    return reached
