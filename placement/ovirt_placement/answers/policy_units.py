"""Our policy units by the engine's types, and the engine's own that they stand beside or replace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.rule import Rule, Twin, UnitKind


def _twins(kind: UnitKind, become: Twin) -> dict[str, str]:
    """Our units of a kind, with the engine's twin of each, where this becomes of it."""
    return {
        name: rule.twins[0]
        for name, rule in UNITS.items()
        if rule.kind is kind and rule.twins and rule.twin_is is become
    }


#: Our filters, and the engine's beside which each stands.
FILTERS = _twins(UnitKind.FILTER, Twin.BESIDE)
#: Our weights, and the engine's in whose place each stands.
WEIGHTS = _twins(UnitKind.WEIGHT, Twin.REPLACED)
#: Our balance; a policy has only one. It also does for the engine's that are its twins.
(BALANCE,) = (rule for rule in UNITS.values() if rule.kind is UnitKind.BALANCE)
#: For who places by keys.
KEY_FILTER, KEY_WEIGHT = (
    next(name for name, rule in UNITS.items() if rule.on_request and rule.kind is kind)
    for kind in (UnitKind.FILTER, UnitKind.WEIGHT)
)

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


def usual_units() -> tuple[Rule, ...]:
    """Our units that every policy of ours has."""
    return tuple(rule for rule in UNITS.values() if not rule.on_request)


def attached(units: Mapping[str, NamedUnit], among: Iterable[str]) -> set[str]:
    """Those of these ids that are units of ours."""
    return {i for i in among if i in units and not units[i].internal and units[i].name in UNITS}


def unit_id(
    units: Mapping[str, NamedUnit], kind: UnitKind, name: str, *, internal: bool = False
) -> str | None:
    """Find a unit's id by type and name: an external one has another id in each engine."""
    wanted = (kind, name, internal)
    return next((i for i, unit in units.items() if (unit.type, unit.name, unit.internal) == wanted), None)
