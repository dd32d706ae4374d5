"""Steps 3 and 6: which keys hosts are judged by, name by name, and the sticky ones that a VM takes along.

For each value of a name the hosts stand that have it, so that it is reckoned with once for all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import lcm
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

#: By name, each value as it was written, and the ids of the hosts or VMs that bring it.
Bearers: TypeAlias = Mapping[str, Mapping[Written, Sequence[str]]]

#: By name, each value with the places of the hosts that have it, one for each instance.
Located: TypeAlias = Mapping[str, Mapping[Written, Sequence[int]]]

#: A value, and the places of the hosts that have it, one for each instance.
Found: TypeAlias = tuple[Written, Sequence[int]]


class Column(Record, frozen=True, dict=True):
    """What hosts have under one name. A host is its place among all hosts."""

    #: Values are whole numbers of this part of 1.
    unit: int
    #: Each once, from the lowest.
    values: tuple[int, ...]
    #: For each value the hosts that have it, one for each instance.
    places: tuple[Sequence[int], ...]

    @cached_property
    def by_place(self) -> Mapping[int, tuple[Instances, ...]]:
        """The values of each host that has any."""
        found: defaultdict[int, list[Instances]] = defaultdict(list)
        for value, places in zip(self.values, self.places, strict=True):
            for place, count in Counter(places).items():
                found[place].append(((value, self.unit), count))
        return {place: tuple(instances) for place, instances in found.items()}

    def without(self, written: Written, places: Iterable[int]) -> Column:
        """The same with one instance of a value less on each of these hosts."""
        part, whole = ratio(written)
        at = self.values.index(part * (self.unit // whole))
        left = list(self.places[at])
        for place in places:
            left.remove(place)
        return Column(self.unit, self.values, (*self.places[:at], left, *self.places[at + 1 :]))


class Columns(dict[str, Column | None]):
    """Columns by name, each made when it is first asked for; None where no host has the name."""

    def __init__(self, make: Callable[[str], Column | None], names: Iterable[str]) -> None:
        super().__init__()
        self._make = make
        #: All that some host may have.
        self.names = names

    def __missing__(self, name: str) -> Column | None:
        column = self[name] = self._make(name)
        return column

    def at(self, place: int) -> dict[str, tuple[Instances, ...]]:
        """All that one host has."""
        columns = ((name, self[name]) for name in self.names)
        return {
            name: one.by_place[place] for name, one in columns if one is not None and place in one.by_place
        }


def column(found: Iterable[Found]) -> Column | None:
    """Make a column of values as they were written; the same value may be written in several ways."""
    by_value: defaultdict[Ratio, list[int]] = defaultdict(list)
    for written, places in found:
        if places:
            by_value[ratio(written)] += places
    if not by_value:
        return None
    unit = lcm(*(whole for _, whole in by_value))
    places_of = {part * (unit // whole): places for (part, whole), places in by_value.items()}
    values = tuple(sorted(places_of))
    return Column(unit, values, tuple(places_of[value] for value in values))


def joined(*columns: Column | None) -> Column | None:
    """Make one column of several."""
    return column(
        (Fraction(value, one.unit), places)
        for one in columns
        if one is not None
        for value, places in zip(one.values, one.places, strict=True)
    )


def bearers(brought: Iterable[tuple[str, Iterable[tuple[str, Written]]]]) -> Bearers:
    """Turn who brings which names and values into who brings each of them."""
    by_pair: defaultdict[tuple[str, Written], list[str]] = defaultdict(list)
    for who, pairs in brought:
        for pair in pairs:
            by_pair[pair].append(who)
    by_name: defaultdict[str, dict[Written, list[str]]] = defaultdict(dict)
    for (name, value), ids in by_pair.items():
        by_name[name][value] = ids
    return dict(by_name)


def columns_of(brought: Bearers, places: Mapping[str, int]) -> Columns:
    """Make the columns of what is brought; who has no place counts nowhere."""

    def make(name: str) -> Column | None:
        values = brought.get(name, {}).items()
        return column((value, [places[one] for one in ids if one in places]) for value, ids in values)

    return Columns(make, brought)


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
