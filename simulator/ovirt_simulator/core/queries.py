"""What one can ask the engine: every read of the REST API, answered from immutable records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from ovirt_placement import model

from ..scheduler.filters import Request
from ..scheduler.placing import Scheduler
from . import affinity, statistics
from .backend import Backend
from .entities import (
    AffinityGroup,
    AffinityLabel,
    Cluster,
    DataCenter,
    Event,
    Host,
    HostSummary,
    Job,
    PolicyUnit,
    SchedulingPolicy,
    Statistic,
    Tag,
    Vm,
)
from .rejections import Rejected, existing
from .roles import Permission, Role

Named = TypeVar("Named", Cluster, Host, Vm, AffinityGroup, AffinityLabel, Tag)


class Queries:
    """Reads. Lists come in the engine's order (by name); an unknown id gives None."""

    def __init__(self, backend: Backend, scheduler: Scheduler) -> None:
        self._backend = backend
        self._scheduler = scheduler
        self._state = backend.state

    @property
    def now(self) -> datetime:
        """The simulated time."""
        with self._backend.lock:
            return self._backend.now

    def data_centers(self) -> tuple[DataCenter, ...]:
        with self._backend.lock:
            return tuple(self._state.data_centers.values())

    def data_center(self, data_center_id: str) -> DataCenter | None:
        return self._state.data_centers.get(data_center_id)

    def clusters(self) -> tuple[Cluster, ...]:
        with self._backend.lock:
            return _by_name(self._state.clusters.values())

    def cluster(self, cluster_id: str) -> Cluster | None:
        return self._state.clusters.get(cluster_id)

    def hosts(self) -> tuple[Host, ...]:
        with self._backend.lock:
            return _by_name(self._state.hosts.values())

    def host(self, host_id: str) -> Host | None:
        return self._state.hosts.get(host_id)

    def host_summary(self, host_id: str) -> HostSummary:
        """Count the host's VMs: those that are not down, those that migrate (in or out), and all."""
        with self._backend.lock:
            vms = self._state.vms_on(host_id)
            incoming = self._state.incoming(host_id)
        migrating = sum(vm.status == "migrating" for vm in (*vms, *incoming))
        return HostSummary(active=len(vms), migrating=migrating, total=len(vms))

    def vms(self) -> tuple[Vm, ...]:
        with self._backend.lock:
            return _by_name(self._state.vms.values())

    def vm(self, vm_id: str) -> Vm | None:
        return self._state.vms.get(vm_id)

    def migration_targets(self, vm_ids: Sequence[str], *, closure: bool = False) -> tuple[Host, ...]:
        """Give the hosts that could take all these VMs, by internal filters only: it may be the present one.

        With `closure`, their hard positive peers must fit too. Raises `NotFound` for an unknown VM.
        """
        with self._backend.lock:
            for vm_id in vm_ids:
                existing(self._state.vms, vm_id)
            wanted = dict.fromkeys(vm_ids)
            if closure:
                wanted |= dict.fromkeys(
                    peer for vm_id in vm_ids for peer in affinity.closure(self._state, vm_id)
                )
            allowed = set(self._state.hosts)
            for group in affinity.scheduled_together(self._state, wanted):
                try:
                    allowed &= set(self._scheduler.validate(Request(vm_ids=group), "migrate"))
                except Rejected:
                    return ()
            return _by_name(self._state.hosts[host_id] for host_id in allowed)

    def affinity_groups(self, cluster_id: str) -> tuple[AffinityGroup, ...]:
        with self._backend.lock:
            return _by_name(self._state.groups_of(cluster_id))

    def affinity_group(self, group_id: str) -> AffinityGroup | None:
        return self._state.groups.get(group_id)

    def is_broken(self, group: AffinityGroup) -> bool:
        """Give the `broken` flag, computed from where the members run now."""
        with self._backend.lock:
            return affinity.is_broken(self._state, group)

    def affinity_labels(self) -> tuple[AffinityLabel, ...]:
        with self._backend.lock:
            return _by_name(self._state.labels.values())

    def affinity_label(self, label_id: str) -> AffinityLabel | None:
        return self._state.labels.get(label_id)

    def scheduling_policies(self) -> tuple[SchedulingPolicy, ...]:
        with self._backend.lock:
            return tuple(self._state.policies.values())

    def scheduling_policy(self, policy_id: str) -> SchedulingPolicy | None:
        return self._state.policies.get(policy_id)

    def scheduling_policy_units(self) -> tuple[PolicyUnit, ...]:
        with self._backend.lock:
            return tuple(self._state.units.values())

    def scheduling_policy_unit(self, unit_id: str) -> PolicyUnit | None:
        return self._state.units.get(unit_id)

    def tags(self) -> tuple[Tag, ...]:
        """All tags; those of a VM or host are in its `tags`, by name."""
        with self._backend.lock:
            return _by_name(self._state.tags.values())

    def roles(self) -> tuple[Role, ...]:
        with self._backend.lock:
            return tuple(self._state.roles.values())

    def permissions(self) -> tuple[Permission, ...]:
        """All permissions; those on the whole system that make users log in are not among them."""
        with self._backend.lock:
            return tuple(self._state.permissions.values())

    def networks(self) -> tuple[model.Network, ...]:
        with self._backend.lock:
            return tuple(self._state.networks.values())

    def vnic_profiles(self) -> tuple[model.VnicProfile, ...]:
        with self._backend.lock:
            return tuple(self._state.vnic_profiles.values())

    def jobs(self) -> tuple[Job, ...]:
        with self._backend.lock:
            return tuple(self._backend.jobs.by_id.values())

    def job(self, job_id: str) -> Job | None:
        return self._backend.jobs.by_id.get(job_id)

    def events(self) -> tuple[Event, ...]:
        """Give what shows now: newest id first, without dismissed ones."""
        with self._backend.lock:
            return self._backend.audit_log.visible()

    def event(self, event_id: int) -> Event | None:
        """Give an event that shows by now, dismissed or not."""
        with self._backend.lock:
            return self._backend.audit_log.get(event_id)

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
