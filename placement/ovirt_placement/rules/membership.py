"""Who belongs to an affinity group: the VMs of its own cluster, directly or through a label.

A label, or the engine's unchecked member commands, can bring VMs of other clusters into a group.
They can never share a host with its members, so no rule counts them (docs/rules.md, E5).
"""

from __future__ import annotations

from collections import defaultdict

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.index import once_per_snapshot


@once_per_snapshot
def members(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Ids of a group's VMs that are in the group's cluster, by group id."""
    vms = snapshot.vm_by_id
    return {
        group.id: tuple(
            vm for vm in snapshot.group_vms[group.id] if vm in vms and vms[vm].cluster == group.cluster
        )
        for group in snapshot.affinity_groups
    }


@once_per_snapshot
def groups_of(snapshot: Snapshot) -> dict[str, tuple[AffinityGroup, ...]]:
    """The groups that count a VM among their members, by VM id."""
    by_vm: defaultdict[str, list[AffinityGroup]] = defaultdict(list)
    for group in snapshot.affinity_groups:
        for vm in members(snapshot)[group.id]:
            by_vm[vm].append(group)
    return {vm: tuple(groups) for vm, groups in by_vm.items()}


@once_per_snapshot
def hosts(snapshot: Snapshot) -> dict[str, frozenset[str]]:
    """Ids of a group's hosts, by group id."""
    return {group: frozenset(listed) for group, listed in snapshot.group_hosts.items()}
