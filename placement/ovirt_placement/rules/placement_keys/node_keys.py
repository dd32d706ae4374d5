"""Step 3: which keys hosts are judged by: their own, the computed ones, and those of the VMs on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ovirt_placement.model import PlacementKey
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.columns import Bearers, Column, Columns, Instances, bearers, joined
from ovirt_placement.rules.placement_keys.keys import ignored_because, is_reserved, is_special

#: By name, each value with its instances.
Values: TypeAlias = Mapping[str, Sequence[Instances]]

#: A VM's compiled customer keys as they were when it started; their weights do not count for others.
FrozenSet: TypeAlias = tuple[tuple[str, float], ...]


class NodeKeys(Record, frozen=True):
    """The two lists of one host, and what it passes on to the VMs that start there."""

    system: Values
    customer: Values
    sticky: tuple[PlacementKey, ...] = ()


class NodeLists(Record, frozen=True):
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
    values = {(key.resource, key.name): key.value for key in keys if not ignored_because(key)}
    return bearers((host, ((name, value),)) for (host, name), value in values.items())
