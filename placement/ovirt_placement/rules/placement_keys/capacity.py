"""What hosts can hand out to VMs by placement keys, and the special keys that are made of it."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.lookups.index import once_per_part, once_whatever_is_pending
from ovirt_placement.model import Cluster, Host, PlacementKey, Snapshot, Vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.elements.cpus import cores_of
from ovirt_placement.rules.placement_keys.keys import (
    CPU,
    CPU_RATIO,
    LOAD,
    RAM,
    RAM_RATIO,
    ZERO,
    Ratio,
    ignored_because,
    is_ratio,
    number,
)
from ovirt_placement.rules.placement_keys.presence import Held, host_places
from ovirt_placement.rules.placement_keys.settings import KeySettings

_NO_LIMIT = sys.maxsize


class Source(StrEnum):
    """Whose word a ratio is; the first of these that says something counts."""

    HOST = "host"
    POLICY = "policy"
    CLUSTER = "cluster"


class Contention(Record, frozen=True):
    """How often memory and CPUs may be handed out, and who says so."""

    memory: Fraction
    cpu: Fraction
    memory_source: Source
    cpu_source: Source


@once_whatever_is_pending
def contention_of_hosts(snapshot: Snapshot, settings: KeySettings) -> Sequence[Contention]:
    """The ratios of all hosts, each host at its place; most hosts share those of their cluster."""
    usual = {cluster.id: _usual(cluster, settings) for cluster in snapshot.clusters}
    own = _own_ratios(snapshot)
    return [
        _with_own(usual[host.cluster], own[host.id]) if host.id in own else usual[host.cluster]
        for host in snapshot.hosts
    ]


def contention_of_host(snapshot: Snapshot, host: Host, settings: KeySettings) -> Contention:
    return contention_of_hosts(snapshot, settings)[host_places(snapshot)[host.id]]


def _usual(cluster: Cluster, settings: KeySettings) -> Contention:
    """What counts on hosts that say nothing themselves."""
    return Contention(
        settings.memory_ratio or Fraction(cluster.memory_overcommit_percent) / 100,
        settings.cpu_ratio or Fraction(cluster.cpu_overcommit_percent) / 100,
        Source.POLICY if settings.memory_ratio else Source.CLUSTER,
        Source.POLICY if settings.cpu_ratio else Source.CLUSTER,
    )


def _with_own(usual: Contention, own: Mapping[str, Fraction]) -> Contention:
    found = usual
    if RAM_RATIO in own:
        found = replace(found, memory=own[RAM_RATIO], memory_source=Source.HOST)
    if CPU_RATIO in own:
        found = replace(found, cpu=own[CPU_RATIO], cpu_source=Source.HOST)
    return found


@once_per_part(lambda snapshot: snapshot.placement_keys)
def _own_ratios(keys: tuple[PlacementKey, ...]) -> Mapping[str, Mapping[str, Fraction]]:
    """By the id of each host that has any, its ratios by name; those with mistakes are left out."""
    found: defaultdict[str, dict[str, Fraction]] = defaultdict(dict)
    for key in keys:
        if is_ratio(key) and not ignored_because(key):
            found[key.resource][key.name] = number(key.value) or ZERO
    return dict(found)


class Shortage(StrEnum):
    NOT_UP = "not_up"
    #: Too little that is not handed out yet.
    UNCONTENDED = "uncontended"
    #: Too little really free.
    CONTENDED = "contended"


class Shares(NamedTuple):
    """The special keys of a host. Hosts differ in size, so each counts in parts of its own."""

    #: Of how many parts its shares are.
    whole: int
    #: By name; without `LOAD` where there are no statistics.
    parts: Mapping[str, int]

    @property
    def ratios(self) -> dict[str, Ratio]:
        """Each between 0 and 1."""
        return {name: Fraction(part, self.whole).as_integer_ratio() for name, part in self.parts.items()}


_ONCE = Fraction(1)


class Capacity(Record, frozen=True, kw_only=True, dict=True):
    """A host's memory and CPUs without the VM to be placed, and what is handed out of them. Memory in MiB."""

    up: bool
    memory_mb: int
    #: How often its memory and its CPUs may be handed out.
    memory_ratio: Fraction = Fraction(1)
    cpu_ratio: Fraction = Fraction(1)
    #: What belongs to the VMs on the host and to those on their way to it.
    allocated_mb: int
    allocated_vcpus: int
    cpus: int
    #: Really free, whatever was handed out.
    free_mb: int
    #: Whether `free_mb` leaves the host's own software out already.
    free_without_overhead: bool = False
    #: What must stay free besides a VM.
    overhead_mb: int
    #: How busy its CPUs are: from 1 on, all of them; None where there are no statistics.
    load: Fraction | None = None

    @property
    def uncontended_mb(self) -> Fraction:
        """What may still be handed out; below 0 if too much is."""
        return self.memory_mb * self.memory_ratio - self.allocated_mb

    @cached_property
    def largest_vm_mb(self) -> int:
        """The most memory that a VM may have to find room here; below 0 if none may."""
        return min(limit for _, limit in self.limits)

    @property
    def limits(self) -> tuple[tuple[Shortage, int], ...]:
        """By each thing that there may be too little of, the most memory that a VM may have.

        What there is must exceed what a VM needs. That is a whole number of MiB, so the next one above what
        there is, less 1, is the most that it may need.
        """
        contended_overhead_mb = 0 if self.free_without_overhead else self.overhead_mb
        times, parts = self.memory_ratio.as_integer_ratio()
        uncontended_mb = -(-self.memory_mb * times // parts) - self.allocated_mb
        return (
            (Shortage.NOT_UP, _NO_LIMIT if self.up else -1),
            (Shortage.UNCONTENDED, uncontended_mb - self.overhead_mb - 1),
            (Shortage.CONTENDED, self.free_mb - contended_overhead_mb - 1),
        )

    @cached_property
    def shares(self) -> Shares:
        """How full it is."""
        ram, memory = _share(self.allocated_mb, self.memory_mb, self.memory_ratio)
        vcpus, cpus = _share(self.allocated_vcpus, self.cpus, self.cpu_ratio)
        if self.load is None:
            return Shares(memory * cpus, {RAM: ram * cpus, CPU: vcpus * memory})
        busy, time = _share(self.load.numerator, self.load.denominator, _ONCE)
        parts = {RAM: ram * cpus * time, CPU: vcpus * memory * time, LOAD: busy * memory * cpus}
        return Shares(memory * cpus * time, parts)


def _share(part: int, whole: int, times: Fraction) -> Ratio:
    """A part of a whole that may be handed out this many times; a host that has nothing is full."""
    most, unit = whole * times.numerator, times.denominator
    return (min(max(part * unit, 0), most), most) if most > 0 else (1, 1)


class Room(Record, frozen=True):
    """What a VM needs on a host, what there is, and why it does not fit: nothing, if it does. In MiB."""

    uncontended_mb: Fraction
    uncontended_need_mb: int
    contended_mb: int
    contended_need_mb: int
    shortages: tuple[Shortage, ...]


def room(capacity: Capacity, memory_mb: int) -> Room:
    """Hold the memory of a VM against a host's; what there is must exceed what is needed."""
    need = memory_mb + capacity.overhead_mb
    contended_need = memory_mb if capacity.free_without_overhead else need
    shortages = tuple(shortage for shortage, limit in capacity.limits if memory_mb > limit)
    return Room(capacity.uncontended_mb, need, capacity.free_mb, contended_need, shortages)


def capacity_of(
    host: Host, cluster: Cluster, ratios: Contention, settings: KeySettings, memory_mb: int, vcpus: int
) -> Capacity:
    """What a host has, of which so much is handed out.

    Where it is not known how much memory is physically free, the engine's own account must do: it has
    the overhead and what is promised taken off already.
    """
    cpus = cores_of(host, cluster)
    return Capacity(
        up=host.up,
        memory_mb=host.memory_mb,
        memory_ratio=ratios.memory,
        cpu_ratio=ratios.cpu,
        allocated_mb=memory_mb,
        allocated_vcpus=vcpus,
        cpus=cpus,
        free_mb=host.free_mb if host.memory_free_mb is None else host.memory_free_mb,
        free_without_overhead=host.memory_free_mb is None,
        overhead_mb=settings.overhead_mb,
        load=_load(host, cpus, settings),
    )


def _load(host: Host, cpus: int, settings: KeySettings) -> Fraction | None:
    """How busy the CPUs of a host are; where its load average is not known, the CPU time used must do."""
    average = number(host.load_average_5m) if settings.load_average and cpus else None
    if average is not None:
        return average / cpus
    percent = number(host.cpu_percent)
    return None if percent is None else percent / 100


def without_vm(capacity: Capacity, held: Held, vm: Vm) -> Capacity:
    """A host where what a VM holds counts as free; of what is measured, it uses only what it has there."""
    used_mb = held.memory_mb if capacity.free_without_overhead or not held.arriving else 0
    return replace(
        capacity,
        allocated_mb=capacity.allocated_mb - held.memory_mb,
        allocated_vcpus=capacity.allocated_vcpus - vm.vcpus,
        free_mb=capacity.free_mb + used_mb,
    )
