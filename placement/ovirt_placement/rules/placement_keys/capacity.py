"""Where VMs count, what hosts can hand out to them by placement keys, and the special keys made of it."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from ovirt_placement.lookups import once_for, once_whatever_is_pending
from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.model.record import Record, Worded
from ovirt_placement.rules.elements.placement import destinations, occupied
from ovirt_placement.rules.elements.resources import cores_of
from ovirt_placement.rules.placement_keys.hierarchy import compile_keys, keys_of
from ovirt_placement.rules.placement_keys.keys import (
    CPU,
    CPU_RATIO,
    LOAD,
    RAM,
    RAM_RATIO,
    ZERO,
    KeySettings,
    Ratio,
    ignored_because,
    is_ratio,
    number,
)

#: A VM's compiled customer keys as they were when it started; their weights do not count for others.
FrozenSet: TypeAlias = tuple[tuple[str, float], ...]


class Held(Record, frozen=True):
    """What a VM takes of the memory of a host, which is its place among all hosts."""

    place: int
    memory_mb: int
    #: Not there yet: nothing of the host's memory is used so far, only promised.
    arriving: bool = False


class Presence(Record, frozen=True):
    """What a VM takes of hosts, and the keys that it brings.

    A migrating VM holds memory and CPUs at both ends; its keys move to the target at once. Paused VMs
    count: they hold memory.
    """

    vcpus: int
    held: tuple[Held, ...]
    keys: FrozenSet
    #: Where the keys count.
    places: tuple[int, ...]


@once_whatever_is_pending
def host_places(snapshot: Snapshot) -> dict[str, int]:
    """The place of each host among all, by its id."""
    return {host.id: place for place, host in enumerate(snapshot.hosts)}


def presences(snapshot: Snapshot, vms: Iterable[Vm]) -> Iterator[Presence]:
    """Where these VMs of the snapshot count; nothing of those that are nowhere.

    A running VM brings the keys that were recorded when it started, or its present ones if none were recorded
    them. One that is just starting brings its present ones: a record would be of an earlier run.
    """
    places, recorded = host_places(snapshot), recorded_sets(snapshot)
    for vm in vms:
        if vm.id in snapshot.pending_hosts:
            held = tuple(_held(snapshot, vm))
            counted = tuple(places[host] for host in destinations(snapshot, vm.id) if host in places)
        elif vm.host in places:
            counted = (places[vm.host],)
            held = (Held(places[vm.host], vm.memory_mb),)
        else:
            continue
        keys = recorded.get(vm.id) if vm.host is not None else None
        yield Presence(vm.vcpus, held, present_set(snapshot, vm) if keys is None else keys, counted)


def bringing_present_keys(snapshot: Snapshot) -> set[str]:
    """The VMs that would bring their present keys, wherever they count: no record holds for them."""
    vms = snapshot.vm_by_id
    starting = {vm for vm in snapshot.pending_hosts if vm in vms and vms[vm].host is None}
    return starting | (vms.keys() - recorded_sets(snapshot).keys())


def present_set(snapshot: Snapshot, vm: Vm) -> FrozenSet:
    """What a VM that starts now would bring."""
    compiled = compile_keys(keys_of(snapshot, vm)).customer
    return tuple((key.name, float(key.value)) for key in compiled.values())


@once_for("frozen_keys")
def recorded_sets(snapshot: Snapshot) -> dict[str, FrozenSet]:
    """The recorded keys by VM id."""
    return {record.vm: record.keys for record in snapshot.frozen_keys}


def _held(snapshot: Snapshot, vm: Vm) -> Iterator[Held]:
    """What a VM holds that is on its way: all of its memory where it runs, and elsewhere what is promised."""
    places = host_places(snapshot)
    promised = {entry.host: entry.memory_mb for entry in snapshot.pending if entry.vm == vm.id}
    for host in occupied(snapshot, vm.id):
        if host in places:
            arriving = host != vm.host
            promise = promised.get(host) if arriving else None
            yield Held(places[host], vm.memory_mb if promise is None else promise, arriving)


_NO_LIMIT = sys.maxsize


class Source(StrEnum):
    """Whose word a ratio is; the first of these that says something counts."""

    HOST = "host"
    POLICY = "policy"
    CLUSTER = "cluster"


class Contention(NamedTuple):
    """How often memory and CPUs may be handed out, and who says so."""

    memory: tuple[Fraction, Source]
    cpu: tuple[Fraction, Source]


@once_whatever_is_pending
def contention_of_hosts(snapshot: Snapshot, settings: KeySettings) -> Sequence[Contention]:
    """The ratios of all hosts, each host at its place; most hosts share those of their cluster."""
    own, clusters = _own_ratios(snapshot), snapshot.cluster_by_id
    usual = {cluster.id: _contention(cluster, settings, {}) for cluster in snapshot.clusters}
    return [
        _contention(clusters[host.cluster], settings, own[host.id]) if host.id in own else usual[host.cluster]
        for host in snapshot.hosts
    ]


def _contention(cluster: Cluster, settings: KeySettings, own: Mapping[str, Fraction]) -> Contention:
    def first(name: str, policy: Fraction | None, percent: float) -> tuple[Fraction, Source]:
        if name in own:
            return own[name], Source.HOST
        return (policy, Source.POLICY) if policy else (Fraction(percent) / 100, Source.CLUSTER)

    return Contention(
        first(RAM_RATIO, settings.memory_ratio, cluster.memory_overcommit_percent),
        first(CPU_RATIO, settings.cpu_ratio, cluster.cpu_overcommit_percent),
    )


@once_for("placement_keys")
def _own_ratios(snapshot: Snapshot) -> Mapping[str, Mapping[str, Fraction]]:
    """By the id of each host that has any, its ratios by name; those with mistakes are left out."""
    found: defaultdict[str, dict[str, Fraction]] = defaultdict(dict)
    for key in snapshot.placement_keys:
        if is_ratio(key) and not ignored_because(key):
            found[key.resource][key.name] = number(key.value) or ZERO
    return dict(found)


class Shortage(Worded):
    NOT_UP = "not_up", "is not up"
    UNCONTENDED = "uncontended", "{0} MiB not handed out, {1} must fit with some to spare"
    CONTENDED = "contended", "{0} MiB physically free, {1} must fit with some to spare"


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
        busy, time = _share(self.load.numerator, self.load.denominator, Fraction(1))
        parts = {RAM: ram * cpus * time, CPU: vcpus * memory * time, LOAD: busy * memory * cpus}
        return Shares(memory * cpus * time, parts)


def _share(part: int, whole: int, times: Fraction) -> Ratio:
    """A part of a whole that may be handed out this many times; a host that has nothing is full."""
    most, unit = whole * times.numerator, times.denominator
    return (min(max(part * unit, 0), most), most) if most > 0 else (1, 1)


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
        memory_ratio=ratios.memory[0],
        cpu_ratio=ratios.cpu[0],
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
