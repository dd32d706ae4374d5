"""Prints tables: aligned however wide characters are, fitted to a terminal, safe whatever names hold."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ovirt_service.log_lines import code_of

#: Words that say how things stand, and their colour on a terminal.
_STYLES = {
    "accepted": "green",
    "safe": "green",
    "kept": "green",
    "refused": "red",
    "unsafe": "red",
    "unknown": "yellow",
}
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
    cells = [[escaped(str(cell)) for cell in row] for row in rows]
    widths = [_width(column) for column in zip(headers, *cells, strict=True)]
    grid = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_row(*(Text(header, style="bold") for header in headers))
    grid.add_row(*(Text("-" * width, no_wrap=True, overflow="crop") for width in widths))
    for row in cells:
        grid.add_row(*map(_cell, row))
    console = _console(sum(widths) + 2 * len(widths))
    with console.capture() as printed:
        console.print(grid)
    return "\n".join(line.rstrip() for line in printed.get().splitlines())


def _console(width: int) -> Console:
    """A console on standard output; where that is no terminal, nothing is wrapped or coloured."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return Console(
        width=None if terminal else width,
        force_terminal=terminal,
        markup=False,
        highlight=False,
        emoji=False,
    )


def _cell(text: str) -> Text:
    word = text.partition(":")[0]
    return Text(text, style="red" if word == "broken" else _STYLES.get(text, ""), overflow="fold")


def _width(texts: Sequence[str]) -> int:
    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)
