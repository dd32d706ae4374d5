"""The scheduler: internal filters, then the external ones, then weights and the best rank.

Source: the engine's SchedulingManager (schedule, canSchedule, runFilters, selectBestHost).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from ovirt_placement.model import Host, Snapshot
from ovirt_simulator.core import built_in_policies as built_in
from ovirt_simulator.core import rejections
from ovirt_simulator.core.backend import Backend
from ovirt_simulator.core.entities import Cluster, SchedulingPolicy
from ovirt_simulator.core.rejections import Rejected
from ovirt_simulator.scheduler import filters, weights
from ovirt_simulator.scheduler.external import ExternalUnits, Malformed
from ovirt_simulator.scheduler.filters import Request
from ovirt_simulator.scheduler.weights import Record, best_host

Placed = TypeVar("Placed")
#: What a user hears of an answer that the engine fails on.
_BROKEN = "Internal Engine Error"

#: In the engine's order.
_FILTERS: dict[str, filters.Filter] = {
    built_in.MEMORY_FILTER: filters.memory,
    built_in.CPU_FILTER: filters.cpu,
    built_in.VM_AFFINITY_FILTER: filters.vm_affinity,
    built_in.VM_TO_HOST_FILTER: filters.vm_to_host,
}
_WEIGHTS: dict[str, weights.Weight] = {
    built_in.EVEN_CPU_WEIGHT: weights.even_cpu,
    built_in.EVEN_MEMORY_WEIGHT: weights.even_memory,
    built_in.PREFERRED_HOSTS_WEIGHT: weights.preferred_hosts,
    built_in.HA_RESERVATION_WEIGHT: weights.ha_reservation,
    built_in.VM_AFFINITY_WEIGHT: weights.vm_affinity,
    built_in.VM_TO_HOST_WEIGHT: weights.vm_to_host,
    built_in.HOSTED_ENGINE_WEIGHT: weights.indifferent,
    built_in.HIGH_PERFORMANCE_WEIGHT: weights.high_performance,
    built_in.NUMA_PINNING_WEIGHT: weights.indifferent,
}


class Scheduler:
    """Finds hosts for VMs. One at a time in each cluster: the engine's per-cluster semaphore.

    The engine's lock is free while the external units are asked; nobody waits for the semaphore holding it.
    """

    def __init__(self, backend: Backend, external: ExternalUnits) -> None:
        self._backend = backend
        self._external = external
        self._semaphores: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def validate(self, request: Request, action: str) -> tuple[str, ...]:
        """Give the hosts that the internal filters leave: all that validation asks (canSchedule).

        Raises `Rejected`: no host in question (400), or all of them filtered out (409).
        """
        with self._backend.lock:
            hosts = self._filtered(self._backend.live_snapshot(), request, action)
        return tuple(host.id for host in hosts)

    def schedule(self, request: Request, place: Callable[[str], Placed]) -> Placed:
        """Find the best host, and place the VMs there under the lock before others are scheduled.

        Raises `Rejected`, without messages when no host is left: they stay behind in the validation's list.
        """
        with self._backend.lock:
            cluster = self._cluster(request)
            semaphore = self._semaphores[cluster.id]
        with semaphore:
            chosen = self._choose(request, cluster)
            with self._backend.lock:
                if not self._backend.state.hosts[chosen].up:
                    raise Rejected
                return place(chosen)

    def _choose(self, request: Request, cluster: Cluster) -> str:
        with self._backend.lock:
            snapshot = self._backend.live_snapshot()
            try:
                hosts = self._filtered(snapshot, request, "")
            except Rejected:
                raise Rejected from None
        try:
            hosts = self._external.filter(request, cluster, hosts)
            if not hosts:
                raise Rejected
            if len(hosts) == 1:
                return hosts[0].id
            weighed = self._external.weigh(request, cluster, hosts)
        except Malformed:
            raise rejections.bad_parameters(_BROKEN) from None
        return self._best(snapshot, request, cluster, hosts, weighed)

    def _filtered(self, snapshot: Snapshot, request: Request, action: str) -> tuple[Host, ...]:
        hosts = request.candidates(snapshot)
        if not hosts:
            raise rejections.bad_parameters(
                "There are no hosts to use. Check that the cluster contains at least one host in Up state."
            )
        enabled = {entry.unit for entry in self._policy(self._cluster(request)).filters}
        if request.without_vm_affinity:
            enabled.discard(built_in.VM_AFFINITY_FILTER)
        vms = request.vms(snapshot)
        found: list[tuple[str, str, str]] = []
        state = self._backend.state
        overloaded = partial(filters.cpu_overloaded, state, self._backend.now)
        known: dict[str, filters.Filter] = {**_FILTERS, built_in.CPU_OVERLOADED_FILTER: overloaded}
        asked = [(state.units[key].name, refuse) for key, refuse in known.items() if key in enabled]
        # Every policy must have the first.
        for name, refuse in [("PinToHost", filters.pinned), *asked]:
            refused = refuse(snapshot, vms, hosts)
            found += [(host.name, name, refused[host.id]) for host in hosts if refused.get(host.id)]
            hosts = tuple(host for host in hosts if host.id not in refused)
            if not hosts:
                raise rejections.all_hosts_filtered(action, found)
        return hosts

    def _best(
        self,
        snapshot: Snapshot,
        request: Request,
        cluster: Cluster,
        hosts: Sequence[Host],
        external: Sequence[Record],
    ) -> str:
        """Take the best host by the engine's own weights and the external ones; without any, the first.

        Raises `Rejected` where the external ones choose a host that is not there.
        """
        with self._backend.lock:
            entries = self._policy(cluster).weights
        vms = request.vms(snapshot)
        own = [
            Record(entry.unit, host_id, weight)
            for entry in entries
            if entry.unit in _WEIGHTS
            for host_id, weight in _WEIGHTS[entry.unit](snapshot, vms, hosts).items()
        ]
        factors = {entry.unit: entry.factor for entry in entries}
        ids = [host.id for host in hosts]
        best = best_host(ids, [*own, *external], factors) or ids[0]
        if best not in ids:
            raise rejections.bad_parameters(_BROKEN)
        return best

    def _cluster(self, request: Request) -> Cluster:
        state = self._backend.state
        return state.clusters[request.cluster or state.vms[request.vm_ids[0]].cluster]

    def _policy(self, cluster: Cluster) -> SchedulingPolicy:
        return self._backend.state.policies[cluster.policy_id]
