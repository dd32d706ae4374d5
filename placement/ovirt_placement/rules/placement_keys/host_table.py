"""All hosts of a snapshot side by side, as the steps see them: what each has room for, and its keys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ovirt_placement.model import Host, PlacementKey, Snapshot, Vm
from ovirt_placement.model.key_levels import NODE
from ovirt_placement.rules.index import continued, once_per_part, once_per_snapshot
from ovirt_placement.rules.placement_keys.capacity import Capacity, capacity_of, without_vm
from ovirt_placement.rules.placement_keys.columns import Bearers, Column, Columns, column, columns_of
from ovirt_placement.rules.placement_keys.contention import contention_of_hosts
from ovirt_placement.rules.placement_keys.hierarchy import keys_by_resource
from ovirt_placement.rules.placement_keys.node_keys import NodeKeys, NodeLists, node_lists, own_keys
from ovirt_placement.rules.placement_keys.occupancy import occupancy
from ovirt_placement.rules.placement_keys.presence import Presence, host_places, presences
from ovirt_placement.rules.placement_keys.settings import Settings
from ovirt_placement.rules.placement_keys.special import Shares, shares
from ovirt_placement.rules.placement_keys.sticky import sticky_keys
from ovirt_placement.rules.record import Record


class HostTable(Record, frozen=True, dict=True):
    """Hosts without the VM to be placed. A host is its place in each of these lists."""

    ids: Sequence[str]
    capacities: Sequence[Capacity]
    lists: NodeLists
    #: What must stay free beside a VM.
    overhead_mb: int

    @cached_property
    def largest_vm_mb(self) -> Sequence[int]:
        """The most memory that a VM may have to find room; below 0 where none may."""
        return [capacity.largest_vm_mb(self.overhead_mb) for capacity in self.capacities]

    @cached_property
    def special(self) -> Shares:
        """The special keys."""
        return shares(self.capacities)


@once_per_snapshot
def host_table(snapshot: Snapshot, settings: Settings) -> HostTable:
    """All hosts of a snapshot with all VMs, each host at its place."""
    occupied, clusters = occupancy(snapshot), snapshot.cluster_by_id
    ratios = contention_of_hosts(snapshot, settings)
    return HostTable(
        ids=tuple(host_places(snapshot)),
        capacities=[
            capacity_of(host, clusters[host.cluster], of_host, settings, memory_mb, vcpus)
            for host, of_host, memory_mb, vcpus in zip(
                snapshot.hosts, ratios, occupied.memory_mb, occupied.vcpus, strict=True
            )
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
            capacities[held.place] = without_vm(capacities[held.place], held, vm)
        columns = _of_others(columns, presence)

    return HostTable(
        ids=table.ids,
        capacities=capacities,
        lists=_lists(snapshot, columns, settings),
        overhead_mb=table.overhead_mb,
    )


def keys_of_host(snapshot: Snapshot, host: Host, settings: Settings) -> NodeKeys:
    """The keys of one host, with those of all VMs on it."""
    table, place = host_table(snapshot, settings), host_places(snapshot)[host.id]
    computed = {name: ((share, 1),) for name, share in table.special.at(place)}
    own = keys_by_resource(snapshot).get((NODE, host.id), ())
    system = {**table.lists.system.at(place), **computed}
    return NodeKeys(system, table.lists.customer.at(place), sticky_keys(own))


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
