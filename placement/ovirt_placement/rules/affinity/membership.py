"""Who belongs to an affinity group: the VMs of its own cluster, directly or through a label.

A label, or the engine's unchecked member commands, can bring VMs of other clusters into a group.
They can never share a host with its members, so no rule counts them (docs/rules.md, E5).

Every new snapshot needs these look-ups again before its first decision: they are made with as little
work per member as Python allows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import attrgetter

from ovirt_placement.lookups.index import once_for_members
from ovirt_placement.model import AffinityGroup, Snapshot, Vm

_cluster_of = attrgetter("cluster")


@once_for_members
def members(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Ids of a group's VMs that are in the group's cluster, by group id."""
    vms, group_vms = snapshot.vm_by_id, snapshot.group_vms
    return {group.id: _own(group, group_vms[group.id], vms) for group in snapshot.affinity_groups}


@once_for_members
def groups_of(snapshot: Snapshot) -> Mapping[str, Sequence[AffinityGroup]]:
    """The groups that count a VM among their members, by VM id."""
    by_vm: defaultdict[str, list[AffinityGroup]] = defaultdict(list)
    own = members(snapshot)
    for group in snapshot.affinity_groups:
        for vm in own[group.id]:
            by_vm[vm].append(group)
    return dict(by_vm)


@once_for_members
def hosts(snapshot: Snapshot) -> dict[str, frozenset[str]]:
    """Ids of a group's hosts, by group id."""
    return {group: frozenset(listed) for group, listed in snapshot.group_hosts.items()}


def _own(group: AffinityGroup, all_vms: tuple[str, ...], vms: Mapping[str, Vm]) -> tuple[str, ...]:
    known = [vms[vm] for vm in all_vms if vm in vms]
    if len(known) == len(all_vms) and set(map(_cluster_of, known)) <= {group.cluster}:
        return all_vms
    return tuple(vm.id for vm in known if vm.cluster == group.cluster)
