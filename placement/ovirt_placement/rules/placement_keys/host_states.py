"""Reads from a snapshot what the steps need to know of its hosts."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from msgspec.structs import replace

from ovirt_placement.model import Cluster, Host, PlacementKey, Snapshot, Vm
from ovirt_placement.model.key_levels import NODE
from ovirt_placement.rules.index import continued, once_per_part, once_per_snapshot
from ovirt_placement.rules.placement_keys.capacity import Capacity
from ovirt_placement.rules.placement_keys.columns import Bearers, Column, Columns, column, columns_of
from ovirt_placement.rules.placement_keys.exact import number
from ovirt_placement.rules.placement_keys.hierarchy import keys_by_resource
from ovirt_placement.rules.placement_keys.host_table import HostState, HostTable
from ovirt_placement.rules.placement_keys.node_keys import NodeLists, keys_at, node_lists, own_keys
from ovirt_placement.rules.placement_keys.occupancy import occupancy
from ovirt_placement.rules.placement_keys.presence import Held, Presence, host_places, presences
from ovirt_placement.rules.placement_keys.settings import Settings


@once_per_snapshot
def host_table(snapshot: Snapshot, settings: Settings) -> HostTable:
    """All hosts of a snapshot with all VMs, each host at its place."""
    occupied, clusters = occupancy(snapshot), snapshot.cluster_by_id
    return HostTable(
        ids=tuple(host_places(snapshot)),
        capacities=[
            _capacity(host, clusters[host.cluster], settings, memory_mb, vcpus)
            for host, memory_mb, vcpus in zip(snapshot.hosts, occupied.memory_mb, occupied.vcpus, strict=True)
        ],
        lists=_lists(snapshot, _brought_columns(snapshot), settings),
        overhead_mb=settings.overhead_mb,
    )


def host_table_without(snapshot: Snapshot, settings: Settings, vm: Vm) -> HostTable:
    """The same without one VM: what it holds counts as free, and its keys do not count."""
    table = host_table(snapshot, settings)
    capacities = list(table.capacities)
    columns = _brought_columns(snapshot)
    for presence in presences(snapshot, [vm]):
        for held in presence.held:
            capacities[held.place] = _without(capacities[held.place], held, vm)
        columns = _of_others(columns, presence)

    return HostTable(
        ids=table.ids,
        capacities=capacities,
        lists=_lists(snapshot, columns, settings),
        overhead_mb=table.overhead_mb,
    )


def host_states(
    snapshot: Snapshot, hosts: Iterable[Host], settings: Settings, vm: str | None = None
) -> tuple[HostState, ...]:
    """Hosts one by one with all of their keys, without the VM that is to be placed."""
    table, placed = host_table(snapshot, settings), snapshot.vm_by_id.get(vm or "")
    if placed is not None:
        table = host_table_without(snapshot, settings, placed)
    own = keys_by_resource(snapshot)

    def state(host: str, place: int) -> HostState:
        keys = keys_at(place, table.lists, table.special, own.get((NODE, host), ()))
        return HostState(host, table.capacities[place], keys)

    return tuple(state(host.id, host_places(snapshot)[host.id]) for host in hosts)


def _lists(snapshot: Snapshot, brought: Columns, settings: Settings) -> NodeLists:
    return node_lists(_own_columns(snapshot), brought, reserved_from_vms=settings.reserved_from_vms)


@continued
def _own_columns(snapshot: Snapshot, before: Snapshot | None) -> Columns:
    keys, places = _own_keys(snapshot), host_places(snapshot)
    if before is not None and keys is _own_keys(before) and places == host_places(before):
        return _own_columns(before)
    return columns_of(keys, places)


@continued
def _brought_columns(snapshot: Snapshot, before: Snapshot | None) -> Columns:
    keys = occupancy(snapshot).keys
    columns = Columns(lambda name: column(keys.get(name, {}).items()), keys)
    if before is not None:
        earlier = occupancy(before).keys
        made = tuple(_brought_columns(before).items())
        columns.update((name, one) for name, one in made if keys.get(name) is earlier.get(name))
    return columns


def _of_others(every: Columns, presence: Presence) -> Columns:
    """What others bring than one VM."""
    own = dict(presence.keys)

    def less(name: str) -> Column | None:
        found = every[name]
        return found.without(own[name], presence.places) if found is not None and name in own else found

    return Columns(less, every.names)


@once_per_part(lambda snapshot: snapshot.placement_keys)
def _own_keys(keys: tuple[PlacementKey, ...]) -> Bearers:
    """The hosts by their own keys."""
    return own_keys(key for key in keys if key.level == NODE)


def _capacity(host: Host, cluster: Cluster, settings: Settings, memory_mb: int, vcpus: int) -> Capacity:
    """What a host has, of which so much is handed out.

    Where it is not known how much memory is physically free, the engine's own account must do: it has
    the overhead and what is promised taken off already.
    """
    cpus = (host.threads or host.cores) if cluster.count_threads_as_cores else host.cores
    return Capacity(
        up=host.up,
        memory_mb=host.memory_mb,
        memory_ratio=settings.memory_ratio or _hundredths(cluster.memory_overcommit_percent),
        cpu_ratio=settings.cpu_ratio or _hundredths(cluster.cpu_overcommit_percent),
        allocated_mb=memory_mb,
        allocated_vcpus=vcpus,
        cpus=cpus,
        free_mb=host.free_mb if host.memory_free_mb is None else host.memory_free_mb,
        free_without_overhead=host.memory_free_mb is None,
        load=_load(host, cpus, settings),
    )


def _load(host: Host, cpus: int, settings: Settings) -> Fraction | None:
    """How busy the CPUs of a host are; where its load average is not known, the CPU time used must do."""
    average = number(host.load_average_5m) if settings.load_average and cpus else None
    if average is not None:
        return average / cpus
    percent = number(host.cpu_percent)
    return None if percent is None else _hundredths(percent)


@lru_cache(maxsize=1024)
def _hundredths(percent: Fraction | int) -> Fraction:
    return Fraction(percent) / 100


def _without(capacity: Capacity, held: Held, vm: Vm) -> Capacity:
    """A host where what a VM holds counts as free; of what is measured, it uses only what it has there."""
    used_mb = held.memory_mb if capacity.free_without_overhead or not held.arriving else 0
    return replace(
        capacity,
        allocated_mb=capacity.allocated_mb - held.memory_mb,
        allocated_vcpus=capacity.allocated_vcpus - vm.vcpus,
        free_mb=capacity.free_mb + used_mb,
    )
