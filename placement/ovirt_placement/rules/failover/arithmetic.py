"""The engine's own check of HA reservation, made exact: memory and CPU as they are used (HC1 to HC7).

It is softer than a start: memory that a VM has and does not use counts for nothing, nor do the CPU filter
and placement keys. `starts` says whether starts would be let through.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.rules.cpus import cores_of
from ovirt_placement.rules.failover.combining import Combining
from ovirt_placement.rules.failover.demand import blocks_of
from ovirt_placement.rules.failover.fitting import Fitting
from ovirt_placement.rules.failover.outcomes import Outcome, Survival
from ovirt_placement.rules.failover.protection import protected
from ovirt_placement.rules.solving.budget import Budget
from ovirt_placement.rules.solving.problem import Resources

#: CPU is in millionths of a percent of a core, so that nothing is lost by rounding (HC3, HC7): a VM brings
#: its own use along, whatever the size of the host it came from.
_MILLIONTHS = 10**6


class Arithmetic:
    """A failure is survived if what the VMs use, and are guaranteed, fits on the other hosts."""

    separable = True

    def __init__(self, snapshot: Snapshot, cluster_id: str) -> None:
        self._snapshot = snapshot
        cluster = snapshot.cluster_by_id[cluster_id]
        up = [host for host in snapshot.hosts_of_cluster.get(cluster_id, ()) if host.up]
        self.hosts = tuple(host.id for host in up)
        self._fitting = Fitting({host.id: _room_of(host, cluster) for host in up})
        self._combining = Combining(snapshot, self._fitting.hosts, _need_of, shared=True)
        self._vms = protected(snapshot, self.hosts)

    def vms_on(self, failed: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(vm for host in failed for vm in self._vms[host])

    def combine(self, failed: tuple[str, ...], survivals: Sequence[Survival]) -> Survival | None:
        """Survive by what is known of smaller failures; None if that alone does not do."""
        found = self._combining.combine(
            failed, [one.homes for one in survivals], lambda: self._fitting.order_from(failed[0])
        )
        return None if found is None else Survival(failed, found.homes)

    def judge(self, failed: tuple[str, ...], budget: Budget) -> Outcome:
        blocks = blocks_of(self._snapshot, self.vms_on(failed), frozenset(failed), _need_of)
        return self._fitting.fit(failed, blocks, self._fitting.without(failed), budget)


def _room_of(host: Host, cluster: Cluster) -> Resources:
    """What a host can still take; one without CPU statistics can take no CPU load (as in the engine).

    Memory of pending VMs is already deducted from `free_mb` (HC4).
    """
    idle = 0.0 if host.cpu_percent is None else max(0.0, 100 - host.cpu_percent)
    return Resources(max(0, host.free_mb), round(idle * cores_of(host, cluster) * _MILLIONTHS))


def _need_of(vm: Vm) -> Resources:
    """What a VM needs elsewhere: what it uses, half a MiB rounded up, and at least what it is guaranteed."""
    used = floor(vm.memory_mb * (vm.usage_mem_percent or 0) / 100 + 0.5)
    return Resources(max(used, vm.guaranteed_mb), round((vm.usage_cpu_percent or 0) * vm.vcpus * _MILLIONTHS))
