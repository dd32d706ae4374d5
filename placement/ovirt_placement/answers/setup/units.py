"""Our policy units by the engine's types, and the engine's own that they stand next to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

from ovirt_placement.engine.parsing.policies import PolicyUnit
from ovirt_placement.rules.admission import units as admission
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.placement_keys import units as placement_keys

#: The engine's policy units by id.
Units = Mapping[str, PolicyUnit]

#: Our balance; a policy has only one. It also does for the engine's that are its twins.
(BALANCE,) = (rule for rule in UNITS.values() if rule.kind is UnitKind.BALANCE)
#: For who places by keys.
KEY_FILTER, KEY_WEIGHT = placement_keys.KEY_FILTER.name, placement_keys.KEY_WEIGHT.name


class Admission(StrEnum):
    """What becomes of a start that the HA reservation would not be satisfied after."""

    #: It is refused.
    HARD = "hard"
    #: It is the last choice.
    SOFT = "soft"


ADMISSION_UNITS = {Admission.HARD: admission.FILTER.name, Admission.SOFT: admission.WEIGHT.name}

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


def usual_units() -> tuple[Rule, ...]:
    """Our units that every policy of ours has."""
    return tuple(rule for rule in UNITS.values() if not rule.on_request)


def twins(kind: UnitKind) -> dict[str, str]:
    """Our filters or weights that stand next to one of the engine's, and that one, by name."""
    return {rule.name: rule.twins[0] for rule in UNITS.values() if rule.kind is kind and rule.twins}


def weight_twins(units: Units) -> dict[str, str]:
    """The same of weights by id, as far as the engine knows both."""
    found = {
        unit_id(units, UnitKind.WEIGHT, own): unit_id(units, UnitKind.WEIGHT, twin, internal=True)
        for own, twin in twins(UnitKind.WEIGHT).items()
    }
    return {own: twin for own, twin in found.items() if own is not None and twin is not None}


def attached(units: Units, among: Iterable[str]) -> set[str]:
    """Those of these ids that are units of ours."""
    return {i for i in among if i in units and not units[i].internal and units[i].name in UNITS}


def unit_id(units: Units, kind: UnitKind, name: str, *, internal: bool = False) -> str | None:
    """Find a unit's id by type and name: an external one has another id in each engine."""
    wanted = (kind, name, internal)
    return next((i for i, unit in units.items() if (unit.type, unit.name, unit.internal) == wanted), None)


def unit_name(units: Units, unit: str) -> str:
    """One that the engine does not list has its id for a name."""
    return units[unit].name if unit in units else unit


def known_properties(units: Units, held: Collection[str]) -> dict[str, str]:
    """The properties that a policy with these units knows, each with its regular expression."""
    return {
        name: regex
        for i, unit in units.items()
        if i in held or unit.name in MANDATORY
        for name, regex in unit.properties.items()
    }
