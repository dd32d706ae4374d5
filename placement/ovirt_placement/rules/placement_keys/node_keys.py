"""Step 3: which keys a host is judged by: its own, those computed for it, and those of the VMs on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import TypeAlias

from ovirt_placement.model import PlacementKey
from ovirt_placement.rules.placement_keys.capacity import Capacity
from ovirt_placement.rules.placement_keys.exact import ZERO, Ratio, Written, ratio
from ovirt_placement.rules.placement_keys.keys import (
    CPU,
    LOAD,
    RAM,
    RESERVED_PREFIX,
    SPECIAL_PREFIX,
    hindrances,
    is_reserved,
)
from ovirt_placement.rules.placement_keys.sticky import sticky_keys
from ovirt_placement.rules.verdict import Struct

#: A value, and how many VMs (or the host itself, once) bring it.
Instances: TypeAlias = tuple[Ratio, int]

#: By name, each value with its instances.
Values: TypeAlias = Mapping[str, Sequence[Instances]]

#: A VM's compiled customer keys as they were when it started; their weights do not count for others.
FrozenSet: TypeAlias = tuple[tuple[str, float], ...]

_SPECIAL = (SPECIAL_PREFIX,)
_SPECIAL_OR_RESERVED = (SPECIAL_PREFIX, RESERVED_PREFIX)

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
    valid = [key for key in own if not hindrances(key)]
    system = {key.name: ((ratio(key.value), 1),) for key in valid if not is_reserved(key.name)}
    system |= {name: ((value.as_integer_ratio(), 1),) for name, value in special_keys(capacity)}
    customer: dict[str, list[Instances]] = {}
    for (name, value), count in _customer_keys(valid, frozen, reserved_from_vms).items():
        if (instances := customer.get(name)) is None:
            instances = customer[name] = []
        instances.append((ratio(value), count))
    return NodeKeys(system, customer, sticky_keys(valid))


def _customer_keys(
    valid: Iterable[PlacementKey], frozen: Iterable[FrozenSet], reserved_from_vms: bool
) -> Counter[tuple[str, Written]]:
    """Names and values with the number of their instances; special names are the operator's alone."""
    found: Counter[tuple[str, Written]] = Counter(chain.from_iterable(frozen))
    unwanted = _SPECIAL if reserved_from_vms else _SPECIAL_OR_RESERVED
    for brought in [key for key in found if key[0].startswith(unwanted)]:
        del found[brought]
    found.update((key.name, key.value) for key in valid if is_reserved(key.name))
    return found


def special_keys(capacity: Capacity) -> Iterator[tuple[str, Fraction]]:
    """The keys that are computed: how much of memory and CPUs is handed out, and how busy the host is."""
    yield RAM, _share(capacity.allocated_mb, capacity.memory_mb * capacity.memory_ratio)
    yield CPU, _share(capacity.allocated_vcpus, capacity.cpus * capacity.cpu_ratio)
    if capacity.load is not None:
        yield LOAD, min(max(capacity.load, ZERO), _ONE)


def _share(part: int, whole: Fraction) -> Fraction:
    """Between 0 and 1; a host that has nothing is full."""
    return min(max(part / whole, ZERO), _ONE) if whole else _ONE
