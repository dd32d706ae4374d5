"""The balance of load: what the engine's policy `evenly_distributed` does, with its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.rules.load.moves import admitted, kept_free, may_move
from ovirt_placement.rules.parameters import whole_number
from ovirt_placement.rules.record import Record
from ovirt_placement.rules.verdict import Move

#: A host takes VMs below this part of the high utilisation, in percent, and so many points below it.
_LOW_PERCENT = 80
_LOW_DISTANCE = 10


class Limits(Record, frozen=True):
    """The engine's parameters, by their meaning; the defaults are the engine's own."""

    #: Percent of CPU use from which on a host is overloaded.
    high_utilization: int = 75
    #: MiB of free memory below which a host is overloaded.
    max_free_memory_for_over_utilized: int = 0
    #: MiB of free memory above which a host can take VMs from one that is short of it.
    min_free_memory_for_under_utilized: int = 0
    #: Virtual CPUs per core from which on a host is overloaded; 0 does not look at them.
    vcpu_to_physical_cpu_ratio: int = 0

    @property
    def low_utilization(self) -> float:
        return min(self.high_utilization * _LOW_PERCENT / 100, self.high_utilization - _LOW_DISTANCE)


def limits_of(parameters: Mapping[str, str]) -> Limits:
    """The limits that a policy sets by the parameters of our balance."""

    def number(name: str, default: int) -> int:
        return whole_number(parameters, f"ha_balance_{name}", default)

    default = Limits()
    return Limits(
        high_utilization=number("high_utilization", default.high_utilization),
        max_free_memory_for_over_utilized=number("max_free_memory_for_over_utilized", 0),
        min_free_memory_for_under_utilized=number("min_free_memory_for_under_utilized", 0),
        vcpu_to_physical_cpu_ratio=number("vcpu_to_physical_cpu_ratio", 0),
    )


#: Whether a host may take a VM, as far as something else than load is concerned.
Permits = Callable[[Vm, str], bool]


def balance(
    snapshot: Snapshot,
    cluster_id: str,
    candidate_hosts: tuple[str, ...],
    limits: Limits,
    busy: frozenset[str],
    permits: Permits = lambda vm, host: True,
) -> Move | None:
    """Choose a VM to move off an overloaded host, the least busy first; None if there is nothing to do.

    CPU comes before memory. Of the hosts at or above the high utilisation only those in `busy` count: that
    they have been for long enough is known to who watches them. No host is a target that the VM would
    overload in its turn.
    """
    cluster = snapshot.cluster_by_id[cluster_id]
    hosts = [snapshot.host_by_id[host] for host in candidate_hosts if host in snapshot.host_by_id]
    if len(hosts) < 2:
        return None
    free = [host for host in hosts if not kept_free(snapshot, host.id)]
    idle = [host for host in free if _usage(host) < limits.low_utilization]
    roomy = [host for host in free if host.free_mb > limits.min_free_memory_for_under_utilized]
    for sources, targets in (
        (_overloaded(snapshot, cluster, hosts, limits, busy), idle),
        (_short_of_memory(snapshot, hosts, limits), roomy),
    ):
        for source in sources:
            for vm in sorted(snapshot.vms_of_host.get(source.id, ()), key=lambda vm: (_load(vm), vm.id)):
                if may_move(snapshot, vm):
                    fits = _fitting(snapshot, vm, targets, limits, permits)
                    if fits:
                        return Move(vm.id, fits)
    return None


def overloaded(snapshot: Snapshot, candidate_hosts: tuple[str, ...], limits: Limits) -> frozenset[str]:
    """Hosts at or above the high utilisation at this moment."""
    hosts = (snapshot.host_by_id[host] for host in candidate_hosts if host in snapshot.host_by_id)
    return frozenset(host.id for host in hosts if (host.cpu_percent or 0) >= limits.high_utilization)


def _overloaded(
    snapshot: Snapshot, cluster: Cluster, hosts: Sequence[Host], limits: Limits, busy: frozenset[str]
) -> list[Host]:
    """The busiest first, in cores."""
    now = overloaded(snapshot, tuple(host.id for host in hosts), limits) & busy

    def crowded(host: Host) -> bool:
        vcpus = sum(vm.vcpus for vm in snapshot.vms_of_host.get(host.id, ()))
        ratio = limits.vcpu_to_physical_cpu_ratio
        return ratio > 0 and vcpus >= ratio * _cores(host, cluster)

    found = [host for host in hosts if host.id in now or crowded(host)]
    return sorted(found, key=lambda host: (-(host.cpu_percent or 0) * _cores(host, cluster), host.id))


def _short_of_memory(snapshot: Snapshot, hosts: Sequence[Host], limits: Limits) -> list[Host]:
    """Hosts with more than one VM and too little memory left."""
    return [
        host
        for host in hosts
        if host.free_mb < limits.max_free_memory_for_over_utilized
        and len(snapshot.vms_of_host.get(host.id, ())) > 1
    ]


def _fitting(
    snapshot: Snapshot, vm: Vm, targets: Sequence[Host], limits: Limits, permits: Permits
) -> tuple[str, ...]:
    """The targets that stay within the limits with the VM, the least busy first."""
    fits = [
        host
        for host in targets
        if host.id != vm.host
        and _usage(host) + _load(vm) / (host.threads or host.cores) <= limits.high_utilization
        and host.free_mb - vm.memory_mb > limits.max_free_memory_for_over_utilized
        and permits(vm, host.id)
    ]
    return admitted(
        snapshot, vm, tuple(host.id for host in sorted(fits, key=lambda host: (_usage(host), host.id)))
    )


def _usage(host: Host) -> float:
    """Percent of CPU in use; a host of which that is not known counts as full."""
    return 100.0 if host.cpu_percent is None else host.cpu_percent


def _load(vm: Vm) -> float:
    """Percent of one core that a VM uses."""
    return (vm.usage_cpu_percent or 0) * vm.vcpus


def _cores(host: Host, cluster: Cluster) -> int:
    return (host.threads or host.cores) if cluster.count_threads_as_cores else host.cores
