"""Reads the parameters of units, which the engine hands over as texts."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite


def whole_number(parameters: Mapping[str, str], name: str, default: int) -> int:
    """A parameter of a unit; the default where the policy does not set it, or sets what is no number."""
    value = parameters.get(name, "")
    return int(value) if value.isascii() and value.isdigit() else default


def decimal_number(parameters: Mapping[str, str], name: str) -> float:
    """A parameter that may have decimals; 0 where the policy does not set it, or sets what is no number."""
    try:
        number = float(parameters.get(name, ""))
    except ValueError:
        return 0.0
    return number if isfinite(number) else 0.0
