"""Prints tables: aligned however wide characters are, fitted to a terminal, safe whatever names hold."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ovirt_service.log_lines import code_of

#: Control and format characters, surrogates, separators of lines: they would change what a terminal shows.
_UNSHOWN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def escaped(text: str) -> str:
    """A text that only takes the room of its characters: what would steer a terminal is told by its code."""
    if text.isprintable():
        return text
    return "".join(
        code_of(one) if unicodedata.category(one) in _UNSHOWN and one != "\n" else one for one in text
    )


def show(rows: Sequence[Sequence[object]], headers: Sequence[str]) -> None:
    """Print a table to standard output."""
    print(table(rows, headers))


def table(rows: Sequence[Sequence[object]], headers: Sequence[str]) -> str:
    """Make a table for standard output: as wide as it is, or on a terminal as wide as that."""
    from ovirt_service.grid import drawn

    return drawn([[escaped(str(cell)) for cell in row] for row in rows], headers)
