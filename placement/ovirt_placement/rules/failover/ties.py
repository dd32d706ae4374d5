"""What hard VM groups make of VMs that start: who depends on where another is, and who shuts whom out.

It is what both filters of VM groups go by, the engine's and ours: members of other clusters and groups of
other clusters are among them. Who shares nothing here can start without a look at the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_placement.lookups.index import once_whatever_is_pending
from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.unified_groups import connected

#: What a VM of no such group has.
NONE: frozenset[str] = frozenset()


@once_whatever_is_pending
def bond_of(snapshot: Snapshot) -> Mapping[str, str]:
    """By VM, a name of all that hard positive groups tie to it, in a chain if need be; nothing if alone."""
    chains = connected(
        snapshot.group_vms[group.id]
        for group in _hard(snapshot, positive=True)
        if snapshot.group_vms[group.id]
    )
    return {vm: chain[0] for chain in chains if len(chain) > 1 for vm in chain}


@once_whatever_is_pending
def rivalries_of(snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """By VM, its hard negative groups: no two VMs of one share a host."""
    found: dict[str, set[str]] = {}
    for group in _hard(snapshot, positive=False):
        for vm in snapshot.group_vms[group.id]:
            found.setdefault(vm, set()).add(group.id)
    return {vm: frozenset(groups) for vm, groups in found.items()}


def _hard(snapshot: Snapshot, *, positive: bool) -> list[AffinityGroup]:
    return [
        group
        for group in snapshot.affinity_groups
        if group.vms_rule.hard and group.vms_rule.positive is positive
    ]
