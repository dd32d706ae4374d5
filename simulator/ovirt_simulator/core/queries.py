"""What one can ask the engine: every read of the REST API, answered from immutable records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from ovirt_placement import model

from ..scheduler.placing import Scheduler
from ..scheduler.request import Request
from . import affinity, mac_addresses, statistics, storage_domains
from .access import Permission, Principal, Role
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
from .fence_agent import FenceAgent
from .host_nic import HostNic, nic_of
from .images import DiskImage, Template, plain_template
from .instance_type import InstanceType
from .mac_pool import MacPool
from .network_commands import networks_of
from .rejections import Rejected, existing
from .storage_domain import StorageDomain
from .vm_pool import VmPool
from .vm_snapshot import VmSnapshot

Named = TypeVar("Named", Cluster, Host, Vm, AffinityGroup, AffinityLabel, Tag, Template, DiskImage)


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

    def fence_agents(self) -> tuple[FenceAgent, ...]:
        """All fence agents, in the order in which those of a host are tried."""
        with self._backend.lock:
            return tuple(sorted(self._state.fence_agents.values(), key=lambda agent: agent.order))

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

    def host_nic(self, host: Host) -> HostNic:
        with self._backend.lock:
            return nic_of(self._state, host)

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

    def storage_domains(self) -> list[StorageDomain]:
        with self._backend.lock:
            return storage_domains.all_of(self._state)

    def networks_of(self, cluster: Cluster) -> dict[str, bool]:
        """The ids of a cluster's networks, with whether its hosts must have them."""
        with self._backend.lock:
            return networks_of(self._state, cluster)

    def mac_address(self, nic_id: str) -> str:
        with self._backend.lock:
            return mac_addresses.mac_address(self._state, nic_id)

    def mac_pools(self) -> tuple[MacPool, ...]:
        with self._backend.lock:
            return tuple(self._state.mac_pools.values())

    def roles(self) -> tuple[Role, ...]:
        with self._backend.lock:
            return tuple(self._state.roles.values())

    def principals(self) -> tuple[Principal, ...]:
        """Users and groups that were taken from a directory."""
        with self._backend.lock:
            return tuple(self._state.principals.values())

    def tags_of_holders(self) -> dict[str, tuple[str, ...]]:
        """The names of tags by the ids of the users and groups that bear any."""
        with self._backend.lock:
            return {one.id: one.tags for one in self._state.holders_tags.values()}

    def permissions(self) -> tuple[Permission, ...]:
        """All permissions; those on the whole system that make users log in are not among them."""
        with self._backend.lock:
            return tuple(self._state.permissions.values())

    def instance_types(self) -> tuple[InstanceType, ...]:
        """Instance types that were added; the state file knows its own by their ids alone."""
        with self._backend.lock:
            return tuple(self._state.instance_types.values())

    def vm_pools(self) -> tuple[VmPool, ...]:
        with self._backend.lock:
            return tuple(self._state.vm_pools.values())

    def vm_snapshots(self, vm_id: str) -> tuple[VmSnapshot, ...]:
        """A VM's snapshots but the active one, oldest first."""
        with self._backend.lock:
            return tuple(one for one in self._state.vm_snapshots.values() if one.vm.id == vm_id)

    def templates(self) -> tuple[Template, ...]:
        """All templates; those that the state file knows by their ids alone are named like these."""
        with self._backend.lock:
            used = {vm.template for vm in self._state.vms.values() if vm.template is not None}
            plain = {name: plain_template(name, name) for name in used}
            return _by_name((plain | self._state.templates).values())

    def template(self, template_id: str) -> Template | None:
        with self._backend.lock:
            return self._state.template(template_id)

    def disks(self) -> tuple[DiskImage, ...]:
        """All disks, attached or not; of those in the state file little more than the id is known."""
        with self._backend.lock:
            attached = (disk.id for vm in self._state.vms.values() for disk in vm.disks)
            plain = {disk_id: DiskImage(id=disk_id, name=disk_id) for disk_id in attached}
            return _by_name((plain | self._state.images).values())

    def disk(self, disk_id: str) -> DiskImage | None:
        with self._backend.lock:
            return self._state.image(disk_id)

    def disk_owners(self, disk_id: str) -> tuple[Vm, ...]:
        with self._backend.lock:
            return self._state.disk_owners(disk_id)

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
