"""The engine's database: every record by id; hosts' figures follow the VMs."""

from __future__ import annotations

from typing import Protocol, TypeVar

from ovirt_placement import model

from .access import Permission, Role
from .built_in_roles import ROLES
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
from .occupancy import Occupancy


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
        self.permissions: dict[str, Permission] = {}
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

    def put_cluster(self, cluster: Cluster) -> None:
        """Add or change a cluster, and let its hosts hand out memory as it says from now on."""
        before = self.clusters.get(cluster.id, cluster)
        self.put(self.clusters, cluster)
        percent = cluster.memory_overcommit_percent - before.memory_overcommit_percent
        for host in self.hosts_of(cluster.id) if percent else ():
            self._lend(host, percent)

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

    def drop_vm(self, vm_id: str) -> None:
        """Forget a VM that is down."""
        self.drop_pending(vm_id)
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

    def permissions_on(self, vm: Vm) -> tuple[Permission, ...]:
        """Permissions on the VM itself, without those that its cluster hands down."""
        return tuple(found for found in self.permissions.values() if found.vm == vm.id)

    def _lend(self, host: Host, percent: int) -> None:
        self._occupancy.lend(host, percent)
        self._measure({host.id})

    def _measure(self, host_ids: set[str]) -> None:
        for host_id in host_ids:
            self.hosts[host_id] = self._occupancy.measured(self.hosts[host_id])
