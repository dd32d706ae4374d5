"""Reads the parameters of units, which the engine hands over as texts."""

from __future__ import annotations

from collections.abc import Mapping


def whole_number(parameters: Mapping[str, str], name: str, default: int) -> int:
    """A parameter of a unit; the default where the policy does not set it, or sets what is no number."""
    value = parameters.get(name, "")
    return int(value) if value.isascii() and value.isdigit() else default
