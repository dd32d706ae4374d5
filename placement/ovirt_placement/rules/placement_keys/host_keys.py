"""Steps 3 and 6: which keys hosts are judged by, and the sticky ones that a VM takes along."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from ovirt_placement.model import PlacementKey, StickyCopy
from ovirt_placement.model.placement_keys import STICKY, SYSTEM
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.columns import Bearers, Column, Columns, Instances, bearers, joined
from ovirt_placement.rules.placement_keys.keys import (
    ZERO,
    KeyKind,
    ignored_because,
    is_reserved,
    is_special,
    key_kind,
    number,
)

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


def sticky_keys(own: Iterable[PlacementKey]) -> tuple[PlacementKey, ...]:
    """Of the keys of a host, those that a VM takes along when it starts there; none with mistakes."""
    return tuple(key for key in own if key_kind(key) is KeyKind.STICKY and not ignored_because(key))


def copies_after_start(
    vm: str, copies: Iterable[StickyCopy], sticky: Iterable[PlacementKey]
) -> tuple[StickyCopy, ...]:
    """The copies of a VM once it has started on a host with these sticky keys.

    A copy of the same name is replaced, others stay. A migration copies nothing.
    """
    fresh = {
        key.name: StickyCopy(
            vm=vm,
            name=key.name,
            value=float(number(key.value) or ZERO),
            weight=float(number(key.weight) or ZERO),
        )
        for key in sticky
    }
    kept = {copy.name: copy for copy in copies if copy.vm == vm}
    return tuple((kept | fresh).values())


def as_key(copy: StickyCopy) -> PlacementKey:
    """A copy as it takes part in the compilation of its VM's keys: the operator's, just below the server."""
    return PlacementKey(
        level=STICKY,
        resource=copy.vm,
        key_class=SYSTEM,
        name=copy.name,
        value=copy.value,
        weight=copy.weight,
    )
