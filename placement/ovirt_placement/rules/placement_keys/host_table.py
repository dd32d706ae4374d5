"""All hosts side by side, as the steps see them: what each has room for, and the keys that all have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property

from ovirt_placement.rules.placement_keys.capacity import Capacity
from ovirt_placement.rules.placement_keys.columns import Columns, Found, column
from ovirt_placement.rules.placement_keys.keys import is_special
from ovirt_placement.rules.placement_keys.node_keys import NodeKeys, NodeLists, Values
from ovirt_placement.rules.placement_keys.special import Shares, shares
from ovirt_placement.rules.verdict import Struct


class HostState(Struct, frozen=True):
    """A host as the steps see it, without the VM to be placed."""

    id: str
    capacity: Capacity
    keys: NodeKeys


class HostTable(Struct, frozen=True, dict=True):
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


def table_of(states: Sequence[HostState], overhead_mb: int) -> HostTable:
    """Put hosts that are spelled out one by one side by side."""
    system = [state.keys.system for state in states]
    customer = [state.keys.customer for state in states]
    return HostTable(
        ids=[state.id for state in states],
        capacities=[state.capacity for state in states],
        lists=NodeLists(_columns(system), _columns(customer)),
        overhead_mb=overhead_mb,
    )


def _columns(hosts: Sequence[Values]) -> Columns:
    def found(name: str) -> Iterator[Found]:
        for place, values in enumerate(hosts):
            for ratio, count in values.get(name, ()):
                yield Fraction(*ratio), [place] * count

    names = {name for values in hosts for name in values if not is_special(name)}
    return Columns(lambda name: column(found(name)) if name in names else None, names)
