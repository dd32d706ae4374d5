"""What one can ask the engine, besides its records: what is computed from them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypeVar

from . import affinity, statistics
from .backend import Backend
from .entities import AffinityGroup, Cluster, Event, Host, Job, Statistic, Vm
from .state import State

_Named = TypeVar("_Named", Cluster, Vm, AffinityGroup)


class Queries:
    """Reads. Lists come in the engine's order (by name); an unknown id gives None."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        #: The engine's records; who reads whole tables without the lock copies them first.
        self.state: State = backend.state

    @property
    def now(self) -> datetime:
        """The simulated time."""
        with self._backend.lock:
            return self._backend.now

    def clusters(self) -> tuple[Cluster, ...]:
        return self._by_name(self.state.clusters.values())

    def host(self, host_id: str) -> Host | None:
        return self.state.hosts.get(host_id)

    def vms(self) -> tuple[Vm, ...]:
        return self._by_name(self.state.vms.values())

    def vm(self, vm_id: str) -> Vm | None:
        return self.state.vms.get(vm_id)

    def affinity_groups(self, cluster_id: str) -> tuple[AffinityGroup, ...]:
        with self._backend.lock:
            return self._by_name(self.state.groups_of(cluster_id))

    def is_broken(self, group: AffinityGroup) -> bool:
        """Give the `broken` flag, computed from where the members run now."""
        with self._backend.lock:
            return affinity.is_broken(self.state, group)

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
            return statistics.host_statistics(self._backend, self.state.hosts[host_id])

    def vm_statistics(self, vm_id: str) -> tuple[Statistic, ...]:
        """Measure a VM; all figures are 0 while it is down. Raises KeyError for an unknown id."""
        with self._backend.lock:
            return statistics.vm_statistics(self._backend, self.state.vms[vm_id])

    def _by_name(self, records: Iterable[_Named]) -> tuple[_Named, ...]:
        with self._backend.lock:
            return tuple(sorted(records, key=lambda record: record.name))
