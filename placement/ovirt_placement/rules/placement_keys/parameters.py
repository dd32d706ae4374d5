"""Reads the settings of placement keys from the properties of a cluster's scheduling policy."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

from ovirt_placement.rules.placement_keys.exact import number
from ovirt_placement.rules.placement_keys.settings import DEFAULTS, KeySettings
from ovirt_placement.unit_parameters import PARAMETERS

#: Both units know them: they must reckon alike, and a policy may hold but one of them.
_NAMES = tuple(part.partition("=")[0] for part in PARAMETERS["PlacementKeyFilter"].split(";"))


def settings_of(properties: Mapping[str, str]) -> KeySettings:
    """The settings that a policy's units reckon with; the defaults where its numbers cannot be together."""
    return _parsed(tuple((name, properties[name]) for name in _NAMES if name in properties))


@lru_cache(maxsize=64)
def _parsed(given: tuple[tuple[str, str], ...]) -> KeySettings:
    try:
        return read_settings(dict(given))
    except ValueError:
        return DEFAULTS


def read_settings(properties: Mapping[str, str]) -> KeySettings:
    """Read the parameters, of which the engine has checked each by itself.

    Raises `ValueError` where they cannot be together.
    """
    return KeySettings(
        initial=_number(properties, "placement_initial", DEFAULTS.initial),
        final=_number(properties, "placement_final", DEFAULTS.final),
        steps=int(_number(properties, "placement_steps", Fraction(DEFAULTS.steps))),
        overhead_mb=int(_number(properties, "placement_overhead", Fraction(DEFAULTS.overhead_mb))),
        memory_ratio=number(properties.get("placement_memory_ratio")),
        cpu_ratio=number(properties.get("placement_cpu_ratio")),
        reserved_from_vms=properties.get("placement_reserved_from_vms") == "true",
        load_average=properties.get("placement_load") == "average",
    )


def _number(properties: Mapping[str, str], name: str, default: Fraction) -> Fraction:
    found = number(properties.get(name))
    return default if found is None else found
