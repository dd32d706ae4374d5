"""The engine's database: every record by id; hosts' figures follow the VMs."""

from __future__ import annotations

from typing import Protocol, TypeVar

from msgspec.structs import replace

from ovirt_placement import model

from .access import HoldersTags, Permission, Principal, Role
from .built_in_roles import ROLES
from .devices import Attachment
from .entities import (
    AffinityGroup,
    AffinityLabel,
    Cluster,
    DataCenter,
    Host,
    PolicyUnit,
    SchedulingPolicy,
    Tag,
    Vm,
)
from .fence_agent import FenceAgent
from .images import BLANK_TEMPLATE, DiskImage, Template, plain_template
from .instance_type import PREDEFINED, InstanceType
from .mac_pool import DEFAULT_POOL, MacPool
from .occupancy import Occupancy
from .storage_domain import StorageDomain
from .vm_pool import VmPool
from .vm_snapshot import VmSnapshot


class Identified(Protocol):
    """A record with an id."""

    @property
    def id(self) -> str: ...


class Named(Identified, Protocol):
    """A record with an id and a name."""

    @property
    def name(self) -> str: ...


Kept = TypeVar("Kept", bound=Identified)


class State:
    """All records. Only its methods change it; the caller holds the engine's lock."""

    def __init__(self) -> None:
        self.data_centers: dict[str, DataCenter] = {}
        self.clusters: dict[str, Cluster] = {}
        self.hosts: dict[str, Host] = {}
        self.vms: dict[str, Vm] = {}
        self.groups: dict[str, AffinityGroup] = {}
        self.labels: dict[str, AffinityLabel] = {}
        self.policies: dict[str, SchedulingPolicy] = {}
        self.units: dict[str, PolicyUnit] = {}
        self.tags: dict[str, Tag] = {}
        self.roles: dict[str, Role] = dict(ROLES)
        self.principals: dict[str, Principal] = {}
        self.permissions: dict[str, Permission] = {}
        #: By the id of the user or group.
        self.holders_tags: dict[str, HoldersTags] = {}
        self.fence_agents: dict[str, FenceAgent] = {}
        #: Without those that the state file knows by their ids alone.
        self.templates: dict[str, Template] = {BLANK_TEMPLATE: plain_template(BLANK_TEMPLATE, "Blank")}
        self.images: dict[str, DiskImage] = {}
        #: Those that are no more as they were when the engine began.
        self.storage_domains: dict[str, StorageDomain] = {}
        self.instance_types: dict[str, InstanceType] = dict(PREDEFINED)
        self.vm_pools: dict[str, VmPool] = {}
        self.vm_snapshots: dict[str, VmSnapshot] = {}
        self.mac_pools: dict[str, MacPool] = {DEFAULT_POOL.id: DEFAULT_POOL}
        #: The addresses that clients gave to NICs, by the ids of these.
        self.macs: dict[str, str] = {}
        self.networks: dict[str, model.Network] = {}
        self.vnic_profiles: dict[str, model.VnicProfile] = {}
        #: Starts that are decided and do not show yet, by VM id.
        self.pending: dict[str, model.Pending] = {}
        #: What the state file holds and an engine knows nothing of, for the way back: placement keys, rules.
        self.placement_keys: tuple[model.PlacementKey, ...] = ()
        self.frozen_keys: tuple[model.FrozenKeys, ...] = ()
        self.sticky_copies: tuple[model.StickyCopy, ...] = ()
        self.placement_rules: tuple[model.PlacementRule, ...] = ()
        self.draining_hosts: tuple[str, ...] = ()
        #: Grows with every change.
        self.revision = 0
        self._occupancy = Occupancy()

    def calibrate(self) -> None:
        """Take the present figures of all hosts as what their present VMs leave over."""
        for host in self.hosts.values():
            self._occupancy.calibrate(host)

    def put_installed(self, host: Host) -> None:
        """Change a host that has just reported its figures: they are what its VMs, if any, leave over."""
        self.put(self.hosts, host)
        self._occupancy.calibrate(host)

    def put_cluster(self, cluster: Cluster) -> None:
        """Add or change a cluster, and let its hosts hand out memory as it says from now on."""
        before = self.clusters.get(cluster.id, cluster)
        self.put(self.clusters, cluster)
        percent = cluster.memory_overcommit_percent - before.memory_overcommit_percent
        for host in self.hosts_of(cluster.id) if percent else ():
            self._lend(host, percent)

    def move_host(self, host: Host, cluster_id: str) -> Host:
        """Give the host to another cluster, and let it hand out memory as that one says."""
        source, target = self.clusters[host.cluster], self.clusters[cluster_id]
        self.put(self.hosts, replace(host, cluster=cluster_id))
        self._lend(host, target.memory_overcommit_percent - source.memory_overcommit_percent)
        return self.hosts[host.id]

    def put(self, table: dict[str, Kept], record: Kept) -> None:
        """Add or change a record of any table but hosts' figures and VMs, which have methods of their own."""
        self.revision += 1
        table[record.id] = record

    def drop(self, table: dict[str, Kept], record_id: str) -> None:
        self.revision += 1
        del table[record_id]

    def put_vm(self, vm: Vm) -> None:
        """Add or change a VM, and let the hosts that it leaves and takes follow."""
        before = self.vms.get(vm.id)
        self.put(self.vms, vm)
        self._measure(self._occupancy.move(before, vm, self.pending.get(vm.id)))

    def drop_host(self, host_id: str) -> None:
        """Forget a host that has no VMs, and take it out of affinity groups and labels."""
        for group in tuple(self.groups.values()):
            if host_id in group.hosts:
                self.put(self.groups, replace(group, hosts=_without(group.hosts, host_id)))
        for label in tuple(self.labels.values()):
            if host_id in label.hosts:
                self.put(self.labels, replace(label, hosts=_without(label.hosts, host_id)))
        for agent in tuple(self.fence_agents.values()):
            if agent.host == host_id:
                self.drop(self.fence_agents, agent.id)
        for permission in tuple(self.permissions.values()):
            if permission.host == host_id:
                self.drop(self.permissions, permission.id)
        self.drop(self.hosts, host_id)

    def drop_vm(self, vm_id: str) -> None:
        """Forget a VM that is down."""
        self.drop_pending(vm_id)
        for snapshot in tuple(self.vm_snapshots.values()):
            if snapshot.vm.id == vm_id:
                self.drop(self.vm_snapshots, snapshot.id)
        self.drop(self.vms, vm_id)

    def put_pending(self, pending: model.Pending) -> None:
        """Remember a start that is decided."""
        vm = self.vms[pending.vm]
        self.pending[vm.id] = pending
        self.revision += 1
        self._measure(self._occupancy.move(vm, vm, pending))

    def drop_pending(self, vm_id: str) -> None:
        """Forget a start: it shows by now, or came to nothing."""
        pending = self.pending.pop(vm_id, None)
        if pending is not None:
            self.revision += 1
            self._occupancy.release(pending, self.vms[vm_id])
            self._measure({pending.host})

    def vms_on(self, host_id: str) -> tuple[Vm, ...]:
        """VMs that run on the host; what is on its way there is not among them."""
        return self._occupancy.vms_on(host_id)

    def incoming(self, host_id: str) -> tuple[Vm, ...]:
        """VMs that are on their way to the host: started or migrating."""
        return tuple(self.vms[vm_id] for vm_id in self._occupancy.incoming(host_id))

    def hosts_of(self, cluster_id: str) -> tuple[Host, ...]:
        return tuple(host for host in self.hosts.values() if host.cluster == cluster_id)

    def groups_of(self, cluster_id: str) -> tuple[AffinityGroup, ...]:
        return tuple(group for group in self.groups.values() if group.cluster == cluster_id)

    def template(self, template_id: str) -> Template | None:
        """Give a template; one that VMs of the state file are made from is there, and plain."""
        if template_id in self.templates:
            return self.templates[template_id]
        used = any(vm.template == template_id for vm in self.vms.values())
        return plain_template(template_id, template_id) if used else None

    def image(self, disk_id: str) -> DiskImage | None:
        """Give a disk; one that VMs of the state file have is there, and of the usual size."""
        if disk_id in self.images:
            return self.images[disk_id]
        return DiskImage(id=disk_id, name=disk_id) if self.disk_owners(disk_id) else None

    def template_of_disk(self, disk_id: str) -> Template | None:
        """The template that the disk belongs to."""
        templates = self.templates.values()
        return next((one for one in templates if any(disk.id == disk_id for disk in one.vm.disks)), None)

    def disks_of_its_own(self, vm: Vm) -> tuple[Attachment, ...]:
        """The disks of a VM that no other VM may have, which its snapshots and templates hold."""
        return tuple(
            disk for disk in vm.disks if disk.id not in self.images or not self.images[disk.id].shareable
        )

    def disk_owners(self, disk_id: str) -> tuple[Vm, ...]:
        """The VMs that have the disk attached: one, unless it is shared or the state file says otherwise."""
        return tuple(vm for vm in self.vms.values() if any(disk.id == disk_id for disk in vm.disks))

    def permissions_on(self, vm: Vm) -> tuple[Permission, ...]:
        """Permissions on the VM itself, without those that its cluster hands down."""
        return tuple(found for found in self.permissions.values() if found.vm == vm.id)

    def _lend(self, host: Host, percent: int) -> None:
        self._occupancy.lend(host, percent)
        self._measure({host.id})

    def _measure(self, host_ids: set[str]) -> None:
        for host_id in host_ids:
            self.hosts[host_id] = self._occupancy.measured(self.hosts[host_id])


def _without(ids: tuple[str, ...], wanted: str) -> tuple[str, ...]:
    return tuple(each for each in ids if each != wanted)
