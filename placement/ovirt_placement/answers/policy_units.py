"""Our policy units by the engine's types, and the engine's own that they stand beside or replace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

FILTER = "filter"
WEIGHT = "weight"
BALANCE = "load_balancing"

#: Our filters, and the engine's beside which each stands: that one sees whole groups and pending VMs.
FILTERS = {"AffinityFilter": "VmAffinityGroups", "HostAffinityFilter": "VmToHostsAffinityGroups"}
#: Our weights, and the engine's in whose place each stands.
WEIGHTS = {
    "SoftAffinityWeight": "VmAffinityGroups",
    "HostAffinityWeight": "VmToHostsAffinityGroups",
    "HaReservationWeight": "OptimalForHaReservation",
}
#: Our balance, and the engine's for which it also does; a policy has only one.
HA_BALANCE = "HaReservationBalance"
REPLACED_BALANCES = ("None", "OptimalForEvenDistribution")
#: For who places by keys.
KEY_FILTER = "PlacementKeyFilter"
KEY_WEIGHT = "PlacementKeyWeight"

#: Filters that the engine runs in every policy, listed or not; they cannot be attached.
MANDATORY = frozenset(
    {
        "CompatibilityVersion",
        "CPU-Level",
        "CPUTopology",
        "CpuPinning",
        "HostDevice",
        "PinToHost",
        "VM leases ready",
        "MDevice",
    }
)


class NamedUnit(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def internal(self) -> bool: ...


def unit_id(units: Mapping[str, NamedUnit], kind: str, name: str, *, internal: bool) -> str | None:
    """Find a unit's id by type and name: an external one has another id in each engine."""
    wanted = (kind, name, internal)
    return next((i for i, unit in units.items() if (unit.type, unit.name, unit.internal) == wanted), None)
