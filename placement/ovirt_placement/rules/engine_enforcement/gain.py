"""Whether the engine would move a VM for its soft groups: only where the target is better than its host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby

from ovirt_placement.model import AffinityGroup, Cluster, Snapshot
from ovirt_placement.rules.affinity.host_groups import listed_hosts
from ovirt_placement.rules.affinity.membership import groups_of, members
from ovirt_placement.rules.affinity.priorities import fixed_point

#: The engine's factors where a policy says nothing.
_VM_FACTOR, _HOST_FACTOR = 1, 20


def gains(snapshot: Snapshot, vm: str, target: str | None, *, as_engine: bool = False) -> bool:
    """Whether soft groups of a VM are better off on the target, which is the best host for it.

    The engine takes a gain in either family, whatever the other loses, and may undo it later: so does this
    with `as_engine`. Else the family that the policy weighs more decides, and the other only where that one
    sees no difference.
    """
    source = snapshot.vm_by_id[vm].host
    if target is None or source is None or target == source:
        return False
    soft = groups_of(snapshot).get(vm, ())
    by_hosts = _first_difference(_host_levels(snapshot, soft, source, target))
    by_vms = _first_difference(_vm_levels(snapshot, soft, vm, source, target))
    if as_engine:
        return by_hosts > 0 or by_vms > 0
    policy = snapshot.cluster_by_id[snapshot.vm_by_id[vm].cluster]
    first, second = (by_vms, by_hosts) if _vms_first(policy) else (by_hosts, by_vms)
    return (first or second) > 0


def _vms_first(cluster: Cluster) -> bool:
    vms = cluster.policy.get("vm_affinity_weight", _VM_FACTOR)
    return vms > cluster.policy.get("vm_to_host_weight", _HOST_FACTOR)


def _first_difference(levels: Iterable[int]) -> int:
    """More than 0 is a gain, less is a loss, by the highest priority in which the hosts differ."""
    return next((level for level in levels if level), 0)


def _by_priority(groups: Iterable[AffinityGroup]) -> Iterator[list[AffinityGroup]]:
    ordered = sorted(groups, key=lambda group: -fixed_point(group.priority))
    for _, same in groupby(ordered, key=lambda group: fixed_point(group.priority)):
        yield list(same)


def _host_levels(
    snapshot: Snapshot, groups: Iterable[AffinityGroup], source: str, target: str
) -> Iterator[int]:
    """By priority, how many groups fewer are violated on the target."""
    soft = [group for group in groups if group.hosts_rule.soft and listed_hosts(snapshot, group)]
    for same in _by_priority(soft):
        yield sum(_right(snapshot, group, target) - _right(snapshot, group, source) for group in same)


def _right(snapshot: Snapshot, group: AffinityGroup, host: str) -> bool:
    return (host in listed_hosts(snapshot, group)) is group.hosts_rule.positive


def _vm_levels(
    snapshot: Snapshot, groups: Iterable[AffinityGroup], vm: str, source: str, target: str
) -> Iterator[int]:
    """By priority, whether positive and negative groups gain: a loss of either sign is one."""
    for same in _by_priority(group for group in groups if group.vms_rule.soft):
        scores: defaultdict[bool, int] = defaultdict(int)
        for group in same:
            hosts = [snapshot.vm_by_id[peer].host for peer in members(snapshot)[group.id] if peer != vm]
            there, here = hosts.count(target), hosts.count(source)
            if group.vms_rule.positive:
                scores[True] += (there > here) - (there < here)
            else:
                scores[False] += (here > 0) - (there > 0)
        yield min(scores.values()) if min(scores.values()) < 0 else max(scores.values())
