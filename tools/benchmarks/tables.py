"""Tables of measurements, as plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ovirt_service.tables import table


def of_records(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of rows that name their columns."""
    headers = tuple(rows[0]) if rows else ()
    return table([[row.get(header, "") for header in headers] for row in rows], headers)
