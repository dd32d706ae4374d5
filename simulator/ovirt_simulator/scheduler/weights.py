"""The engine's own weights, of those that the simulator's hosts can tell apart: lower is better.

Source: the engine's EvenDistributionCPUWeightPolicyUnit, EvenDistributionMemoryWeightPolicyUnit,
PreferredHostsWeightPolicyUnit, HaReservationWeightPolicyUnit, VmAffinityWeightPolicyUnit and
VmToHostAffinityWeightPolicyUnit, as they behave.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ovirt_placement.model import AffinityGroup, Host, Snapshot, Vm

#: What a vCPU that does not run yet is taken to need of a core: the engine's VcpuConsumptionPercentage.
_VCPU_PERCENT = 10
#: Weights by host id.
Weights = dict[str, int]
Weight = Callable[[Snapshot, Sequence[Vm], Sequence[Host]], Weights]


def even_cpu(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Prefer hosts whose CPU will have less to do, with the VMs on their way there."""
    return {host.id: round(_cpu_percent(snapshot, vms, host)) for host in hosts}


def _cpu_percent(snapshot: Snapshot, vms: Sequence[Vm], host: Host) -> float:
    scheduled = {vm.id for vm in vms}
    coming = [
        snapshot.vm_by_id[entry.vm]
        for entry in snapshot.pending
        if entry.host == host.id and entry.vm not in scheduled
    ]
    added: float = sum(vm.vcpus * _VCPU_PERCENT for vm in coming)
    for vm in vms:
        if vm.host != host.id:
            added += vm.vcpus * (vm.usage_cpu_percent or 0.0 if vm.host else _VCPU_PERCENT)
    return (host.cpu_percent or 0.0) + added / host.cores


def even_memory(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Prefer hosts with more memory left to hand out."""
    most = max(host.free_mb for host in hosts)
    return {host.id: most - host.free_mb for host in hosts}


def preferred_hosts(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Prefer the hosts that a migratable VM names."""
    wanted = {host for vm in vms if vm.migratable for host in vm.pinned_hosts}
    return {host.id: int(bool(wanted) and host.id not in wanted) for host in hosts}


def ha_reservation(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Prefer hosts with fewer highly available VMs, of 100 for the fullest candidate, by ScaleDown."""
    cluster = snapshot.cluster_by_id[vms[0].cluster]
    if not any(vm.ha for vm in vms) or not cluster.ha_reservation:
        return dict.fromkeys((host.id for host in hosts), 0)
    counts = {host.id: sum(vm.ha for vm in snapshot.vms_of_host.get(host.id, ())) for host in hosts}
    most = max(counts.values()) or 1
    scale_down = int(cluster.scheduling_properties.get("ScaleDown", "1"))
    return {host_id: -(-int(count / most * 100 + 0.5) // scale_down) for host_id, count in counts.items()}


def vm_affinity(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Rank hosts by the VM-to-VM groups they break, hard and soft alike, then by the peers they have."""
    scheduled = {vm.id for vm in vms}
    groups = [group for group in _groups_of(snapshot, vms) if group.vms_rule.enabled]
    keys = {host.id: _vm_affinity_key(snapshot, groups, scheduled, host) for host in hosts}
    return _ranks(keys)


def vm_to_host(snapshot: Snapshot, vms: Sequence[Vm], hosts: Sequence[Host]) -> Weights:
    """Rank hosts by the priorities of the soft VM-to-host groups they break."""
    groups = [group for group in _groups_of(snapshot, vms) if group.hosts_rule.soft]
    keys = {
        host.id: _worst_first(
            group
            for group in groups
            if (host.id in snapshot.group_hosts[group.id]) != group.hosts_rule.positive
        )
        for host in hosts
    }
    return _ranks(keys)


def _vm_affinity_key(
    snapshot: Snapshot, groups: Sequence[AffinityGroup], scheduled: set[str], host: Host
) -> tuple[tuple[float, ...], int, int]:
    broken: list[AffinityGroup] = []
    friends: set[str] = set()
    for group in groups:
        there = {
            vm_id
            for vm_id in snapshot.group_vms[group.id]
            if vm_id not in scheduled and host.id in _places(snapshot, vm_id)
        }
        if bool(there) != group.vms_rule.positive:
            broken.append(group)
        if group.vms_rule.positive:
            friends |= there
    tied = sum(_is_tied(snapshot, vm_id) for vm_id in friends)
    return _worst_first(broken), -tied, -len(friends)


def _is_tied(snapshot: Snapshot, vm_id: str) -> bool:
    """Tell whether the peer cannot leave; the engine takes every pending one for migratable (quirk W1)."""
    return vm_id not in snapshot.pending_hosts and not snapshot.vm_by_id[vm_id].movable


def _places(snapshot: Snapshot, vm_id: str) -> tuple[str, ...]:
    host = snapshot.vm_by_id[vm_id].host
    return snapshot.pending_hosts.get(vm_id) or (() if host is None else (host,))


def _groups_of(snapshot: Snapshot, vms: Sequence[Vm]) -> list[AffinityGroup]:
    groups = {group.id: group for vm in vms for group in snapshot.groups_of_vm.get(vm.id, ())}
    return list(groups.values())


def _worst_first(groups: Iterable[AffinityGroup]) -> tuple[float, ...]:
    return tuple(sorted((group.priority for group in groups), reverse=True))


def _ranks(keys: Mapping[str, Any]) -> Weights:
    """Give each host 1 plus the number of strictly better ones."""
    ordered = sorted(keys.values())
    return {host_id: 1 + bisect_left(ordered, key) for host_id, key in keys.items()}
