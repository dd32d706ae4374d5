"""What one can ask the engine, besides its records: what is computed from them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypeVar

from . import affinity, statistics
from .backend import Backend
from .entities import AffinityGroup, AffinityLabel, Cluster, Event, Host, Job, Statistic, Tag, Vm
from .state import State

Named = TypeVar("Named", Cluster, Host, Vm, AffinityGroup, AffinityLabel, Tag)


class Queries:
    """Reads. Lists come in the engine's order (by name); an unknown id gives None."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    @property
    def now(self) -> datetime:
        """The simulated time."""
        with self._backend.lock:
            return self._backend.now

    @property
    def state(self) -> State:
        """The engine's records; who reads whole tables without the lock copies them first."""
        return self._state

    def clusters(self) -> tuple[Cluster, ...]:
        with self._backend.lock:
            return _by_name(self._state.clusters.values())

    def host(self, host_id: str) -> Host | None:
        return self._state.hosts.get(host_id)

    def host_summary(self, host_id: str) -> tuple[int, int, int]:
        """Count the host's VMs: those that are not down, those reported to migrate (in or out), and all."""
        with self._backend.lock:
            vms = self._state.vms_on(host_id)
            incoming = self._state.incoming(host_id)
        # Hosts report it with their statistics, so that it comes later than the VM's own status.
        migrating = sum(vm.status == "migrating" and vm.migration_progress > 0 for vm in (*vms, *incoming))
        return len(vms), migrating, len(vms)

    def vms(self) -> tuple[Vm, ...]:
        with self._backend.lock:
            return _by_name(self._state.vms.values())

    def vm(self, vm_id: str) -> Vm | None:
        return self._state.vms.get(vm_id)

    def affinity_groups(self, cluster_id: str) -> tuple[AffinityGroup, ...]:
        with self._backend.lock:
            return _by_name(self._state.groups_of(cluster_id))

    def is_broken(self, group: AffinityGroup) -> bool:
        """Give the `broken` flag, computed from where the members run now."""
        with self._backend.lock:
            return affinity.is_broken(self._state, group)

    def jobs(self) -> tuple[Job, ...]:
        with self._backend.lock:
            return tuple(self._backend.jobs.by_id.values())

    def events(self) -> tuple[Event, ...]:
        """Give what shows now: newest id first."""
        with self._backend.lock:
            return self._backend.audit_log.visible()

    def host_statistics(self, host_id: str) -> tuple[Statistic, ...]:
        """Measure a host; all figures are 0 while it is not up. Raises KeyError for an unknown id."""
        with self._backend.lock:
            return statistics.host_statistics(self._backend, self._state.hosts[host_id])

    def vm_statistics(self, vm_id: str) -> tuple[Statistic, ...]:
        """Measure a VM; all figures are 0 while it is down. Raises KeyError for an unknown id."""
        with self._backend.lock:
            return statistics.vm_statistics(self._backend, self._state.vms[vm_id])


def _by_name(records: Iterable[Named]) -> tuple[Named, ...]:
    return tuple(sorted(records, key=lambda record: record.name))
