"""The engine's own filters: which hosts they refuse, and the reason that the engine's messages give.

Source: the engine's PinToHostPolicyUnit, MemoryPolicyUnit, CPUPolicyUnit, VmAffinityFilterPolicyUnit and
VmToHostAffinityFilterPolicyUnit, as they behave but without their crashes; the reasons stand in AppErrors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ovirt_placement.model import AffinityGroup, AffinityLabel, Host, Snapshot, Vm

from ..core.affinity import legacy_labels

#: Reasons by host id: the hosts that a filter refuses.
Refusals = dict[str, str]
Filter = Callable[[Snapshot, Sequence[Vm], Sequence[Host]], Refusals]


def memory(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse hosts that may not hand out the memory of the VMs that are not there yet."""
    refusals = {}
    for host in hosts:
        needed = sum(vm.memory_mb for vm in vms if host.id not in _places(snapshot, vm))
        if needed > host.free_mb:
            refusals[host.id] = f"its available memory is too low ({host.free_mb} MB) to run the VM"
    return refusals


def cpu(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse hosts with fewer cores than the largest VM has CPUs; nobody is exempt, and nothing adds up."""
    most = max((vm.vcpus for vm in vms), default=0)
    return {
        host.id: "it does not have enough cores"
        for host in hosts
        if most > _cores(host, snapshot.cluster_by_id[host.cluster].count_threads_as_cores)
    }


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
    allowed = {place for group in together for place in _peer_places(snapshot, group, scheduled)}
    refusals = {}
    for host in hosts:
        hostile = [group for group in apart if host.id in _peer_places(snapshot, group, scheduled)]
        if hostile:
            refusals[host.id] = _matched_negative(hostile)
        elif allowed and host.id not in allowed:
            running = [group for group in together if _peer_places(snapshot, group, scheduled)]
            refusals[host.id] = _missed_positive(running)
    return refusals


def vm_to_host(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Refusals:
    """Refuse hosts by hard VM-to-host affinity; positive groups intersect, an empty one refuses all."""
    refusals: Refusals = {}
    for vm in vms:
        groups = [group for group in snapshot.groups_of_vm.get(vm.id, ()) if group.hosts_rule.hard]
        cluster = snapshot.cluster_by_id[vm.cluster]
        labels = [label for label in legacy_labels(snapshot.affinity_labels, cluster) if vm.id in label.vms]
        for host in hosts:
            hostile, missed = _host_groups_against(snapshot, host, groups, labels)
            if hostile:
                refusals.setdefault(host.id, _matched_negative(hostile))
            elif missed:
                refusals.setdefault(host.id, _missed_positive(missed))
    return refusals


class InternalFilter(msgspec.Struct, frozen=True):
    """A filter under the name that the engine's messages give it."""

    name: str
    refuse: Filter


#: In the engine's order: what every policy must have, then what the policy enables.
PIN_TO_HOST = InternalFilter("PinToHost", pinned)
MEMORY = InternalFilter("Memory", memory)
CPU = InternalFilter("CPU", cpu)
VM_AFFINITY = InternalFilter("VmAffinityGroups", vm_affinity)
VM_TO_HOST = InternalFilter("VmToHostsAffinityGroups", vm_to_host)


def _cores(host: Host, threads_count: bool) -> int:
    return host.threads if threads_count and host.threads is not None else host.cores


def _places(snapshot: Snapshot, vm: Vm) -> tuple[str, ...]:
    """Give where affinity counts a VM: where it is on its way to, else where it runs."""
    return snapshot.pending_hosts.get(vm.id) or (() if vm.host is None else (vm.host,))


def _hard_vm_groups(snapshot: Snapshot, vms: Sequence[Vm]) -> tuple[list[AffinityGroup], list[AffinityGroup]]:
    groups = {
        group.id: group for vm in vms for group in snapshot.groups_of_vm.get(vm.id, ()) if group.vms_rule.hard
    }
    positive = [group for group in groups.values() if group.vms_rule.positive]
    return positive, [group for group in groups.values() if not group.vms_rule.positive]


def _peer_places(snapshot: Snapshot, group: AffinityGroup, scheduled: set[str]) -> set[str]:
    return {
        place
        for vm_id in snapshot.group_vms[group.id]
        if vm_id not in scheduled
        for place in _places(snapshot, snapshot.vm_by_id[vm_id])
    }


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
