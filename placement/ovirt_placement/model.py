"""The placement state of an engine: immutable, typed, indexed.

Every type has the field names of the cluster state file. Memory is in MiB, utilisation in percent,
ids are opaque strings. A `Snapshot` is one moment of one engine; nothing in it ever changes.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

import msgspec


class Struct(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """An immutable record, decoded strictly.

    Such records form no cycles; with tens of thousands of them, the garbage collector's looking for some
    would be what an answer to the engine takes longest for.
    """


class DataCenter(Struct, frozen=True):
    id: str
    name: str
    local_storage: bool = False


class SchedulingPolicy(Struct, frozen=True):
    """The external units that a cluster's scheduling policy enables, by unit name."""

    filters: tuple[str, ...] = ()
    weights: dict[str, int] = {}
    balance: str | None = None


class Cluster(Struct, frozen=True):
    id: str
    name: str
    ha_reservation: bool
    data_center: str | None = None
    compatibility: str = "4.7"
    count_threads_as_cores: bool = False
    upgrade_mode: bool = False
    #: Factors of the engine's own weight units, by name.
    policy: dict[str, int] = {}
    memory_overcommit_percent: int = 100
    cpu_overcommit_percent: int = 100
    #: How many failed hosts the highly available VMs must survive.
    ha_failures: int = 1
    scheduling_properties: dict[str, str] = {}
    scheduling_policy: SchedulingPolicy | None = None


class Host(Struct, frozen=True):
    id: str
    name: str
    cluster: str
    #: The REST API's word: up, maintenance, non_responsive ...
    status: str
    memory_mb: int
    #: What the scheduler may still hand out; memory of pending VMs is already deducted.
    free_mb: int
    #: Used, 0 to 100; None where there are no statistics.
    cpu_percent: float | None
    cores: int
    threads: int | None = None
    #: Physically free.
    memory_free_mb: int | None = None
    #: How many processes ran or waited for a CPU, on average over 5 minutes; None where nobody says.
    load_average_5m: float | None = None
    #: A dedicated failover host.
    failover: bool = False
    tags: tuple[str, ...] = ()

    @property
    def up(self) -> bool:
        return self.status == "up"


class Disk(Struct, frozen=True):
    id: str
    bootable: bool
    profile: str | None = None


class Nic(Struct, frozen=True):
    id: str
    name: str
    vnic_profile: str | None = None


class Vm(Struct, frozen=True):
    id: str
    name: str
    cluster: str
    #: Where it runs; the source until a migration hands over; None when down or suspended.
    host: str | None
    #: The REST API's word: up, down, migrating, paused ...
    status: str
    memory_mb: int
    guaranteed_mb: int
    usage_mem_percent: float | None
    usage_cpu_percent: float | None
    vcpus: int
    ha: bool
    #: False for everything but the engine's "migratable"; "user_migratable" counts as not.
    migratable: bool
    hosted_engine: bool
    #: The target of a migration under way, where it is known.
    migrating_to: str | None = None
    #: When its present run began, in seconds since the epoch; None where nobody says, and when it is down.
    running_since: float | None = None
    pinned_hosts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    custom_properties: dict[str, str] = {}
    template: str | None = None
    instance_type: str | None = None
    owner: str | None = None
    quota: str | None = None
    cpu_profile: str | None = None
    disks: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()

    @property
    def movable(self) -> bool:
        """Whether anyone but its user may migrate it."""
        return self.migratable and not self.hosted_engine


class Network(Struct, frozen=True):
    id: str
    name: str


class VnicProfile(Struct, frozen=True):
    id: str
    name: str
    network: str


class Rule(Struct, frozen=True):
    """One half of an affinity group. The enforcing flag may be set on a disabled rule: ask `hard`."""

    enabled: bool
    positive: bool
    enforcing: bool

    @property
    def hard(self) -> bool:
        return self.enabled and self.enforcing

    @property
    def soft(self) -> bool:
        return self.enabled and not self.enforcing


class AffinityGroup(Struct, frozen=True):
    id: str
    name: str
    cluster: str
    #: Higher matters more; rounded to 1e-7 by the engine.
    priority: float
    vms_rule: Rule
    hosts_rule: Rule
    vms: tuple[str, ...]
    hosts: tuple[str, ...]
    vm_labels: tuple[str, ...]
    host_labels: tuple[str, ...]


class AffinityLabel(Struct, frozen=True):
    id: str
    name: str
    vms: tuple[str, ...]
    hosts: tuple[str, ...]
    #: The legacy flag "implicit affinity group", honoured by clusters below 4.4.
    implicit: bool = False


class Pending(Struct, frozen=True):
    """A placement that is decided and not yet visible as a running VM: a start, or a migration's target."""

    vm: str
    host: str
    memory_mb: int | None = None


class PlacementKey(Struct, frozen=True):
    level: str
    resource: str
    #: The class of key: system, be or customer.
    key_class: str = msgspec.field(name="class")
    name: str
    #: A number, or whatever its author wrote in place of one.
    value: float | str
    weight: float | None = None
    sticky: bool = False


class FrozenKeys(Struct, frozen=True):
    vm: str
    keys: tuple[tuple[str, float], ...]


class StickyCopy(Struct, frozen=True):
    vm: str
    name: str
    value: float
    weight: float


class Snapshot(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, dict=True
):
    """The placement state of one engine at one moment, with the look-ups that rules need."""

    format: int = 1
    data_centers: tuple[DataCenter, ...] = ()
    clusters: tuple[Cluster, ...]
    hosts: tuple[Host, ...]
    vms: tuple[Vm, ...]
    networks: tuple[Network, ...] = ()
    vnic_profiles: tuple[VnicProfile, ...] = ()
    affinity_groups: tuple[AffinityGroup, ...]
    affinity_labels: tuple[AffinityLabel, ...]
    pending: tuple[Pending, ...] = ()
    placement_keys: tuple[PlacementKey, ...] = ()
    frozen_keys: tuple[FrozenKeys, ...] = ()
    sticky_copies: tuple[StickyCopy, ...] = ()

    @cached_property
    def cluster_by_id(self) -> dict[str, Cluster]:
        return {cluster.id: cluster for cluster in self.clusters}

    @cached_property
    def host_by_id(self) -> dict[str, Host]:
        return {host.id: host for host in self.hosts}

    @cached_property
    def vm_by_id(self) -> dict[str, Vm]:
        return {vm.id: vm for vm in self.vms}

    @cached_property
    def label_by_id(self) -> dict[str, AffinityLabel]:
        return {label.id: label for label in self.affinity_labels}

    @cached_property
    def group_by_id(self) -> dict[str, AffinityGroup]:
        return {group.id: group for group in self.affinity_groups}

    @cached_property
    def hosts_of_cluster(self) -> dict[str, tuple[Host, ...]]:
        by_cluster = defaultdict(list)
        for host in self.hosts:
            by_cluster[host.cluster].append(host)
        return {cluster: tuple(hosts) for cluster, hosts in by_cluster.items()}

    @cached_property
    def vms_of_host(self) -> dict[str, tuple[Vm, ...]]:
        """VMs by the host they run on; what is on its way there is not among them."""
        by_host = defaultdict(list)
        for vm in self.vms:
            if vm.host is not None:
                by_host[vm.host].append(vm)
        return {host: tuple(vms) for host, vms in by_host.items()}

    @cached_property
    def group_vms(self) -> dict[str, tuple[str, ...]]:
        """Ids of a group's VMs, by group id: its own and those of its VM labels, each once."""
        labels = self.label_by_id
        return {
            group.id: _flattened(group.vms, tuple(labels[label].vms for label in group.vm_labels))
            for group in self.affinity_groups
        }

    @cached_property
    def group_hosts(self) -> dict[str, tuple[str, ...]]:
        """Ids of a group's hosts, by group id: its own and those of its host labels, each once."""
        labels = self.label_by_id
        return {
            group.id: _flattened(group.hosts, tuple(labels[label].hosts for label in group.host_labels))
            for group in self.affinity_groups
        }

    @cached_property
    def groups_of_vm(self) -> dict[str, tuple[AffinityGroup, ...]]:
        """Groups by the id of a VM that belongs to them, directly or through a label."""
        by_vm = defaultdict(list)
        for group in self.affinity_groups:
            for vm in self.group_vms[group.id]:
                by_vm[vm].append(group)
        return {vm: tuple(groups) for vm, groups in by_vm.items()}

    @cached_property
    def pending_hosts(self) -> dict[str, tuple[str, ...]]:
        """Hosts that a VM is on its way to, by VM id: pending placements and known migration targets."""
        by_vm: dict[str, list[str]] = defaultdict(list)
        for entry in self.pending:
            by_vm[entry.vm].append(entry.host)
        for vm in self.vms:
            if vm.migrating_to is not None:
                by_vm[vm.id].append(vm.migrating_to)
        return {vm: tuple(dict.fromkeys(hosts)) for vm, hosts in by_vm.items()}


def _flattened(direct: tuple[str, ...], labelled: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    if not labelled:
        return direct
    return tuple(dict.fromkeys([*direct, *(member for members in labelled for member in members)]))
