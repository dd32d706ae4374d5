"""Steps 3 and 6: which keys hosts are judged by, name by name, and the sticky ones that a VM takes along.

For each value of a name the hosts stand that have it, so that it is reckoned with once for all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from ovirt_placement.model import PlacementKey, StickyCopy
from ovirt_placement.model.placement_keys import STICKY, SYSTEM
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.keys import (
    ZERO,
    KeyKind,
    Ratio,
    Written,
    ignored_because,
    is_reserved,
    is_special,
    key_kind,
    number,
    ratio,
)

#: A value, and how many VMs (or the host itself, once) bring it.
Instances: TypeAlias = tuple[Ratio, int]

#: By name, each value as it was written, and the ids of the hosts that have it.
Bearers: TypeAlias = Mapping[str, Mapping[Written, Sequence[str]]]

#: By name, each value with the places of the hosts that have it, one for each instance.
Located: TypeAlias = Mapping[str, Mapping[Written, Sequence[int]]]

#: What hosts have under one name: each value, in no order, with the places of the hosts that have it, one for
#: each instance. A host is its place among all hosts.
Column: TypeAlias = Mapping[Ratio, Sequence[int]]


def column(found: Iterable[tuple[Written, Iterable[int]]]) -> Column:
    """Make a column of values as they were written; the same value may be written in several ways."""
    by_value: defaultdict[Ratio, list[int]] = defaultdict(list)
    for written, places in found:
        by_value[ratio(written)] += places
    return {value: places for value, places in by_value.items() if places}


def _by_place(one: Column) -> Mapping[int, tuple[Instances, ...]]:
    found: defaultdict[int, list[Instances]] = defaultdict(list)
    for value in sorted(one, key=lambda value: Fraction(*value)):
        for place, count in Counter(one[value]).items():
            found[place].append((value, count))
    return {place: tuple(instances) for place, instances in found.items()}


class Columns(dict[str, Column]):
    """Columns by name, each made when it is first asked for; empty where no host has the name."""

    def __init__(self, make: Callable[[str], Column], names: Iterable[str]) -> None:
        super().__init__()
        self._make = make
        self._by_place: dict[str, Mapping[int, tuple[Instances, ...]]] = {}
        #: All that some host may have.
        self.names = names

    def __missing__(self, name: str) -> Column:
        column = self[name] = self._make(name)
        return column

    def at(self, place: int) -> dict[str, tuple[Instances, ...]]:
        """All that one host has."""
        return {name: found for name in self.names if (found := self.instances(name, place))}

    def instances(self, name: str, place: int) -> tuple[Instances, ...]:
        """What one host has under a name, from the lowest."""
        if name not in self._by_place:
            self._by_place[name] = _by_place(self[name])
        return self._by_place[name].get(place, ())


def columns_of(own: Bearers, places: Mapping[str, int]) -> Columns:
    """Make the columns of what hosts have; one that has no place counts nowhere."""

    def make(name: str) -> Column:
        values = own.get(name, {}).items()
        return column((value, [places[one] for one in ids if one in places]) for value, ids in values)

    return Columns(make, own)


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

    def system(name: str) -> Column:
        return {} if is_special(name) or is_reserved(name) else own[name]

    def customer(name: str) -> Column:
        if is_special(name):
            return {}
        if not is_reserved(name):
            return brought[name]
        if not reserved_from_vms:
            return own[name]
        every = (*own[name].items(), *brought[name].items())
        return column((Fraction(*value), places) for value, places in every)

    return NodeLists(Columns(system, own.names), Columns(customer, {*own.names, *brought.names}))


def own_keys(keys: Iterable[PlacementKey]) -> Bearers:
    """Which hosts have which keys of their own; keys with mistakes are left out."""
    values = {(key.resource, key.name): key.value for key in keys if not ignored_because(key)}
    found: defaultdict[str, defaultdict[Written, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (host, name), value in values.items():
        found[name][value].append(host)
    return found


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
