"""Step 3: which keys a host is judged by: its own, those computed for it, and those of the VMs on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TypeAlias

from ovirt_placement.model import PlacementKey
from ovirt_placement.rules.placement_keys.capacity import Capacity
from ovirt_placement.rules.placement_keys.exact import ZERO, Written
from ovirt_placement.rules.placement_keys.keys import CPU, LOAD, RAM, is_reserved, validate
from ovirt_placement.rules.verdict import Struct

#: A multiset of values for each name: how many VMs (or the host itself, once) bring each value.
Values: TypeAlias = Mapping[str, Mapping[Written, int]]

#: A VM's compiled customer keys as they were when it started; their weights do not count for others.
FrozenSet: TypeAlias = tuple[tuple[str, float], ...]

_ONE = Fraction(1)


class NodeKeys(Struct, frozen=True):
    """The two lists of a host, and what it passes on to the VMs that start there."""

    system: Values
    customer: Values
    sticky: tuple[PlacementKey, ...] = ()


def node_keys(
    own: Iterable[PlacementKey],
    capacity: Capacity,
    frozen: Iterable[FrozenSet],
    *,
    reserved_from_vms: bool = False,
) -> NodeKeys:
    """Compile the lists of one host. Keys with mistakes are left out.

    `frozen` has an entry for each VM on the host but the one to be placed. `reserved_from_vms` lets
    them bring reserved names, too, as the letter of the original says; by default only hosts do.
    """
    valid = [key for key in own if not validate(key)]
    system: dict[str, dict[Written, int]] = {
        key.name: {key.value: 1} for key in valid if not is_reserved(key.name)
    }
    system |= {name: {value: 1} for name, value in special_keys(capacity)}
    customer: dict[str, dict[Written, int]] = {}
    for keys in frozen:
        for name, value in keys:
            if reserved_from_vms or not is_reserved(name):
                values = customer.setdefault(name, {})
                values[value] = values.get(value, 0) + 1
    for key in valid:
        if is_reserved(key.name):
            values = customer.setdefault(key.name, {})
            values[key.value] = values.get(key.value, 0) + 1
    return NodeKeys(system, customer, tuple(key for key in valid if key.sticky))


def special_keys(capacity: Capacity) -> Iterator[tuple[str, Fraction]]:
    """The keys that are computed: how much of memory and CPUs is handed out, and how busy the host is."""
    yield RAM, _share(capacity.allocated_mb, capacity.memory_mb * capacity.memory_ratio)
    yield CPU, _share(capacity.allocated_vcpus, capacity.cpus * capacity.cpu_ratio)
    if capacity.load is not None:
        yield LOAD, min(max(capacity.load, ZERO), _ONE)


def _share(part: int, whole: Fraction) -> Fraction:
    """Between 0 and 1; a host that has nothing is full."""
    return min(max(part / whole, ZERO), _ONE) if whole else _ONE
