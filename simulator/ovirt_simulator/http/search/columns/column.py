"""Columns: how a field is read from a record, and what several tables read alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Column: TypeAlias = "Callable[[Any], Any]"
Columns: TypeAlias = "Mapping[str, Column]"

#: The one architecture of everything here.
ARCHITECTURE = "x86_64"


def nothing(_: Any) -> str:
    """Read what the engine has as an empty text."""
    return ""


def always(value: Any) -> Column:
    return lambda _: value


def name(record: Any) -> str:
    found: str = record.name
    return found


def word(status: str) -> str:
    """Spell a status as searches do: nonresponsive for non_responsive."""
    return status.replace("_", "")


def percent(value: float | None) -> int:
    return round(value or 0)
