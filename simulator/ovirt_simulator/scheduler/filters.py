"""The engine's own filters, and of them those by pinning and affinity: which hosts they refuse, and why.

Source: the engine's PinToHostPolicyUnit, VmAffinityFilterPolicyUnit and VmToHostAffinityFilterPolicyUnit, as
they behave but without their crashes; the reasons stand in AppErrors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ovirt_placement.model import AffinityGroup, AffinityLabel, Host, Snapshot, Vm

from ..core.affinity import legacy_labels
from .capacity_filters import cpu, memory
from .internal_filter import InternalFilter, Refusals
from .peers import peer_places


def pinned(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse the hosts that a VM which may not migrate is not pinned to."""
    bound = [set(vm.pinned_hosts) for vm in vms if vm.pinned_hosts and not vm.migratable]
    return {
        host.id: "it is not among the hosts that the VM is pinned to"
        for host in hosts
        if any(host.id not in allowed for allowed in bound)
    }


def vm_affinity(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse hosts by hard VM-to-VM affinity; negative always beats positive."""
    together, apart = _hard_vm_groups(snapshot, vms)
    scheduled = {vm.id for vm in vms}
    for group in apart:
        if len(scheduled & set(snapshot.group_vms[group.id])) > 1:
            return {host.id: _matched_negative([group]) for host in hosts}
    taken = {group.id: _taken(snapshot, group, vms, scheduled) for group in (*together, *apart)}
    allowed = {place for group in together for place in taken[group.id]}
    refusals = {}
    for host in hosts:
        hostile = [group for group in apart if host.id in taken[group.id]]
        if hostile:
            refusals[host.id] = _matched_negative(hostile)
        elif allowed and host.id not in allowed:
            refusals[host.id] = _missed_positive([group for group in together if taken[group.id]])
    return refusals


def vm_to_host(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse hosts by hard VM-to-host affinity; positive groups intersect, an empty one refuses all.

    Labels count as groups by the cluster of the hosts, of which there must be one, not by that of the VMs.
    """
    refusals: Refusals = {}
    cluster = snapshot.cluster_by_id[hosts[0].cluster]
    legacy = legacy_labels(snapshot.affinity_labels, cluster)
    for vm in vms:
        groups = [group for group in snapshot.groups_of_vm.get(vm.id, ()) if group.hosts_rule.hard]
        labels = [label for label in legacy if vm.id in label.vms]
        for host in hosts:
            hostile, missed = _host_groups_against(snapshot, host, groups, labels)
            if hostile:
                refusals.setdefault(host.id, _matched_negative(hostile))
            elif missed:
                refusals.setdefault(host.id, _missed_positive(missed))
    return refusals


#: In the engine's order: what every policy must have, then what the policy enables.
PIN_TO_HOST = InternalFilter("PinToHost", pinned)
MEMORY = InternalFilter("Memory", memory)
CPU = InternalFilter("CPU", cpu)
VM_AFFINITY = InternalFilter("VmAffinityGroups", vm_affinity)
VM_TO_HOST = InternalFilter("VmToHostsAffinityGroups", vm_to_host)


def _hard_vm_groups(snapshot: Snapshot, vms: Sequence[Vm]) -> tuple[list[AffinityGroup], list[AffinityGroup]]:
    groups = {
        group.id: group for vm in vms for group in snapshot.groups_of_vm.get(vm.id, ()) if group.vms_rule.hard
    }
    positive = [group for group in groups.values() if group.vms_rule.positive]
    return positive, [group for group in groups.values() if not group.vms_rule.positive]


def _taken(snapshot: Snapshot, group: AffinityGroup, vms: Sequence[Vm], scheduled: Iterable[str]) -> set[str]:
    places = peer_places(snapshot, group, vms, set(scheduled))
    return {place for hosts in places.values() for place in hosts}


def _host_groups_against(
    snapshot: Snapshot, host: Host, groups: Sequence[AffinityGroup], labels: Sequence[AffinityLabel]
) -> tuple[list[AffinityGroup], list[AffinityGroup | AffinityLabel]]:
    hostile: list[AffinityGroup] = []
    missed: list[AffinityGroup | AffinityLabel] = [label for label in labels if host.id not in label.hosts]
    for group in groups:
        listed = host.id in snapshot.group_hosts[group.id]
        if listed and not group.hosts_rule.positive:
            hostile.append(group)
        elif not listed and group.hosts_rule.positive:
            missed.append(group)
    return hostile, missed


def _matched_negative(groups: Sequence[AffinityGroup]) -> str:
    return "it matched negative affinity rules " + ",".join(group.name for group in groups)


def _missed_positive(groups: Sequence[AffinityGroup | AffinityLabel]) -> str:
    return "it did not match positive affinity rules " + ",".join(group.name for group in groups)
