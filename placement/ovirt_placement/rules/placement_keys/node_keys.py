"""Step 3: which keys hosts are judged by: their own, the computed ones, and those of the VMs on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ovirt_placement.model import PlacementKey
from ovirt_placement.rules.placement_keys.capacity import Capacity
from ovirt_placement.rules.placement_keys.columns import (
    Bearers,
    Column,
    Columns,
    Instances,
    bearers,
    columns_of,
    joined,
)
from ovirt_placement.rules.placement_keys.keys import hindrances, is_reserved, is_special
from ovirt_placement.rules.placement_keys.special import Shares, shares
from ovirt_placement.rules.placement_keys.sticky import sticky_keys
from ovirt_placement.rules.verdict import Struct

#: By name, each value with its instances.
Values: TypeAlias = Mapping[str, Sequence[Instances]]

#: A VM's compiled customer keys as they were when it started; their weights do not count for others.
FrozenSet: TypeAlias = tuple[tuple[str, float], ...]


class NodeKeys(Struct, frozen=True):
    """The two lists of one host, and what it passes on to the VMs that start there."""

    system: Values
    customer: Values
    sticky: tuple[PlacementKey, ...] = ()


class NodeLists(Struct, frozen=True):
    """The two lists of all hosts, name by name. Special keys are computed, and stand apart."""

    system: Columns
    customer: Columns


def node_lists(own: Columns, brought: Columns, *, reserved_from_vms: bool = False) -> NodeLists:
    """Make the lists from what hosts have themselves and what VMs bring.

    Special names are the operator's alone. `reserved_from_vms` lets VMs bring reserved names, too, as the
    letter of the original says; by default only hosts do.
    """

    def system(name: str) -> Column | None:
        return None if is_special(name) or is_reserved(name) else own[name]

    def customer(name: str) -> Column | None:
        if is_special(name):
            return None
        if not is_reserved(name):
            return brought[name]
        return joined(own[name], brought[name]) if reserved_from_vms else own[name]

    return NodeLists(Columns(system, own.names), Columns(customer, {*own.names, *brought.names}))


def own_keys(keys: Iterable[PlacementKey]) -> Bearers:
    """Which hosts have which keys of their own; keys with mistakes are left out."""
    values = {(key.resource, key.name): key.value for key in keys if not hindrances(key)}
    return bearers((host, ((name, value),)) for (host, name), value in values.items())


def node_keys(
    own: Iterable[PlacementKey],
    capacity: Capacity,
    frozen: Iterable[FrozenSet],
    *,
    reserved_from_vms: bool = False,
) -> NodeKeys:
    """Compile the lists of one host; `frozen` has an entry for each VM on it but the one to be placed."""
    kept, there = tuple(own), {str(vm): keys for vm, keys in enumerate(frozen)}
    lists = node_lists(
        columns_of(own_keys(kept), {key.resource: 0 for key in kept}),
        columns_of(bearers(there.items()), dict.fromkeys(there, 0)),
        reserved_from_vms=reserved_from_vms,
    )
    return keys_at(0, lists, shares([capacity]), kept)


def keys_at(place: int, lists: NodeLists, special: Shares, own: Iterable[PlacementKey]) -> NodeKeys:
    """The lists of one host of many; `own` are its own keys."""
    system = lists.system.at(place) | {name: ((share, 1),) for name, share in special.at(place)}
    return NodeKeys(system, lists.customer.at(place), sticky_keys(own))
