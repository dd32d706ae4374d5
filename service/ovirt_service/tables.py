"""Prints tables: aligned however wide characters are, fitted to a terminal, safe whatever names hold."""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_service.legible import escaped


def show(rows: Sequence[Sequence[object]], headers: Sequence[str]) -> None:
    """Print a table to standard output."""
    print(table(rows, headers))


def table(rows: Sequence[Sequence[object]], headers: Sequence[str]) -> str:
    """Make a table for standard output: as wide as it is, or on a terminal as wide as that."""
    from ovirt_service.grid import drawn

    return drawn([[escaped(str(cell)) for cell in row] for row in rows], headers)
