"""Prints tables, and lines below them: aligned however wide characters are, fitted to a terminal, safe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ovirt_service.text.legible import escaped


def show(rows: Sequence[Sequence[object]], headers: Sequence[str]) -> None:
    """Print a table to standard output."""
    print(table(rows, headers))


def table(rows: Sequence[Sequence[object]], headers: Sequence[str]) -> str:
    """Make a table for standard output: as wide as it is, or on a terminal as wide as that."""
    from ovirt_service.text.grid import drawn

    return drawn([[escaped(str(cell)) for cell in row] for row in rows], headers)


def show_lines(lines: Iterable[str]) -> None:
    """Print lines to standard output; on a terminal they are folded at words, and go on below indented."""
    from ovirt_service.text.grid import folded

    for line in lines:
        print("\n".join(folded(escaped(line))))
