"""VMs, with what hangs on them."""

from __future__ import annotations

from ovirt_placement.model.record import Struct


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
    #: What the engine adds to its memory hangs on these, too (see `ovirt_placement.rules.elements.memory`).
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
