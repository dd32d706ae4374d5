"""What an engine has: data centers, clusters, hosts, networks, VMs, affinity groups and labels."""

from __future__ import annotations

from enum import StrEnum
from math import floor
from typing import Final, Self, TypeVar

from msgspec.structs import asdict, replace

from ovirt_placement.model.record import Record, Struct

_Struct = TypeVar("_Struct", bound=Struct)

#: The words of the REST API.
HOST_STATUSES = frozenset({
    "unassigned", "down", "maintenance", "up", "non_responsive", "error", "installing", "install_failed",
    "reboot", "preparing_for_maintenance", "non_operational", "pending_approval", "initializing",
    "connecting", "installing_os", "kdumping",
})  # fmt: skip
#: A VM in one of these can be started.
STARTABLE_STATUSES = frozenset({"down", "suspended"})
#: A VM in one of these is on no host.
RESTING_STATUSES = STARTABLE_STATUSES | {"image_locked"}
#: A VM in one of these is on a host.
RUNNING_STATUSES = frozenset({
    "up", "powering_up", "paused", "migrating", "not_responding", "reboot_in_progress", "saving_state",
    "restoring_state", "powering_down",
})  # fmt: skip
VM_STATUSES = RESTING_STATUSES | RUNNING_STATUSES | {"unassigned", "unknown", "wait_for_launch"}


class DataCenter(Struct, frozen=True):
    id: str
    name: str
    local_storage: bool = False


class SchedulingPolicy(Struct, frozen=True):
    """The external units that a cluster's scheduling policy enables, by name; the balance, whosever it is."""

    filters: tuple[str, ...] = ()
    weights: dict[str, int] = {}
    balance: str | None = None
    #: The engine's own filters that can be taken out of a policy, as far as they are known to be in it.
    engine_filters: tuple[str, ...] = ()
    #: Ids of its weights by the names that they have in `weights` and in the cluster's `policy`: they decide
    #: in which order the engine comes upon hosts that are equally good.
    unit_ids: dict[str, str] = {}
    #: External units in the policy that the engine has disabled, and so asks no more.
    disabled: tuple[str, ...] = ()


class Cluster(Struct, frozen=True):
    id: str
    name: str
    ha_reservation: bool
    data_center: str | None = None
    compatibility: str = "4.7"
    count_threads_as_cores: bool = False
    upgrade_mode: bool = False
    #: The correlation id of who began the upgrade that is under way, or the last one.
    upgrade_correlation_id: str | None = None
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
    #: Used, 0 to 100; None where there are no statistics, or where they were not read.
    cpu_percent: float | None
    cores: int
    threads: int | None = None
    sockets: int = 1
    #: Physically free, and free in swap; None where it is not known.
    memory_free_mb: int | None = None
    swap_free_mb: int | None = None
    #: Huge pages that are free, by their size in KiB.
    free_huge_pages: dict[int, int] = {}
    #: How many processes ran or waited for a CPU, on average over 5 minutes; None where it is not known.
    load_average_5m: float | None = None
    #: Whether it manages the storage of its data center, or is about to: the engine counts that as some load.
    spm: bool = False
    #: A dedicated failover host.
    failover: bool = False
    tags: tuple[str, ...] = ()
    #: Whether its statistics were read: what is None of them then, the engine does not know either.
    measured: bool = False
    #: Whether the engine reported more free memory than the VMs there leave: it has not counted them all yet.
    memory_uncounted: bool = False

    @property
    def up(self) -> bool:
        return self.status == "up"


class Network(Struct, frozen=True):
    id: str
    name: str


class VnicProfile(Struct, frozen=True):
    id: str
    name: str
    network: str


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
    #: Sockets x cores x threads.
    vcpus: int
    ha: bool
    #: False for everything but the engine's "migratable"; "user_migratable" counts as not.
    migratable: bool
    hosted_engine: bool
    #: The more, the earlier the engine restarts it: 1 is low, 50 medium, 100 high.
    ha_priority: int = 1
    #: Whether it is down since it crashed, or its host did, as far as anyone knows.
    crashed: bool = False
    #: The target of a migration under way, where it is known.
    migrating_to: str | None = None
    #: When its present run began, in seconds since the epoch; None where not known, and when it is down.
    running_since: float | None = None
    pinned_hosts: tuple[str, ...] = ()
    threads_per_core: int = 1
    #: Of a VM with CPUs of its own: virtual sockets are kept whole.
    cpu_sockets: int = 1
    #: The engine's policy: none, manual, resize_and_pin_numa, dedicated, isolate_threads.
    cpu_pinning: str = "none"
    #: Whether it has the very CPU of its host: the engine moves it only where all flags of that are.
    host_passthrough: bool = False
    #: What the engine adds to its memory hangs on these, too (see `rules.elements.resources`).
    io_threads: int = 1
    video_mb: int = 0
    architecture: str = "x86_64"
    #: How far its memory can grow; reported for POWER only, where the engine asks for it.
    max_memory_mb: int | None = None
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

    @property
    def bound_to(self) -> frozenset[str] | None:
        """The hosts that it is bound to by pinning; None where it is free. A list alone does not bind it."""
        return frozenset(self.pinned_hosts) if self.pinned_hosts and not self.migratable else None


#: More than this no machine has, and no rule needs: sums of it must fit into a solver's numbers.
LARGEST: Final = 10**12
#: The engine keeps a priority as a whole number of these. Source: AffinityGroup.PRIORITY_PRECISION.
STEPS_PER_UNIT: Final = 10**7


def is_priority(number: float) -> bool:
    """Whether its steps fit into the engine's number; those of what is no number do not."""
    return abs(number) * STEPS_PER_UNIT < 2**63


def fixed_point(priority: float) -> int:
    """A group's priority as the engine compares it: a whole number, halves rounded up.

    Source: AffinityGroup.setPriorityFromDouble.
    """
    steps = priority * STEPS_PER_UNIT
    return floor(steps) + (steps - floor(steps) >= 0.5)


class AffinityRule(Struct, frozen=True):
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
    vms_rule: AffinityRule
    hosts_rule: AffinityRule
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


class Fields(Record, frozen=True, gc=False):
    """Some fields of a host or VM, which are read apart from the others."""

    @classmethod
    def of(cls, record: Struct) -> Self:
        return cls(*[getattr(record, name) for name in cls.__struct_fields__])

    def put_on(self, record: _Struct) -> _Struct:
        """The record with these; the same object if it has them."""
        return record if self.of(record) == self else replace(record, **asdict(self))


class HostStatistics(Fields, frozen=True, gc=False):
    """None is what was not measured."""

    cpu_percent: float | None = None
    memory_free_mb: int | None = None
    load_average_5m: float | None = None
    swap_free_mb: int | None = None
    #: By their size in KiB; none where it was not measured.
    free_huge_pages: dict[int, int] = {}
    #: Whether it was tried.
    measured: bool = False


def set_up(host: Host) -> Host:
    """A host as it is set up, without what changes while it works: what is measured, and who is SPM."""
    return HostStatistics().put_on(replace(host, free_mb=0, spm=False))


class VmStatistics(Fields, frozen=True, gc=False):
    """None is what was not measured."""

    usage_mem_percent: float | None = None
    usage_cpu_percent: float | None = None


class Return(StrEnum):
    """Which VMs are brought back to the hosts that they ran on, once all hosts are up again."""

    NONE = "none"
    #: Those of soft rules that were satisfied before and would be violated otherwise.
    RULED = "ruled"
    ALL = "all"
