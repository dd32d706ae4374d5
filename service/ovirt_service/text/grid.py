"""Draws the grid of a table; apart, since Rich takes long to load and few runs print a table."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

#: Between two columns.
_GAP = 2
#: Where the name of a unit as a header goes on in the next line if the terminal is narrow.
_INNER_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: Words that say how things stand, and their colour on a terminal.
_STYLES = {
    "accepted": "green",
    "safe": "green",
    "satisfied": "green",
    "refused": "red",
    "unsafe": "red",
    "unknown": "yellow",
}


def drawn(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> str:
    """Draw what a terminal can show: as wide as it is, or on a terminal as wide as that."""
    widths = [_width(column) for column in zip(headers, *rows, strict=True)]
    words = [_longest_word(column) for column in zip(headers, *rows, strict=True)]
    console = _console(sum(widths) + _GAP * len(widths))
    if sum(words) > console.width - _GAP * (len(widths) - 1):
        headers = [_INNER_WORD.sub("\n", header) for header in headers]
        widths = [_width(column) for column in zip(headers, *rows, strict=True)]
        words = [_longest_word(column) for column in zip(headers, *rows, strict=True)]
    grid = Table(box=None, show_header=False, padding=(0, _GAP, 0, 0), pad_edge=False)
    for width in _fitted(widths, words, console.width - _GAP * (len(widths) - 1)):
        grid.add_column(width=width)
    grid.add_row(*(Text(header, style="bold") for header in headers))
    grid.add_row(*(Text("-" * width, no_wrap=True, overflow="crop") for width in widths))
    for row in rows:
        grid.add_row(*map(_cell, row))
    with console.capture() as printed:
        console.print(grid)
    return "\n".join(line.rstrip() for line in printed.get().splitlines())


def folded(line: str) -> list[str]:
    """Fold a line at words where the terminal ends; where there is none it stays one."""
    width = _console(cell_len(line)).width
    if cell_len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    lines = [""]
    for word in line.split():
        longer = f"{lines[-1]} {word}" if lines[-1].strip() else lines[-1] + word
        if lines[-1].strip() and cell_len(indent + longer) > width:
            lines.append(" " * _GAP + word)
        else:
            lines[-1] = longer
    return [indent + part for part in lines]


def _fitted(widths: Sequence[int], words: Sequence[int], room: int) -> list[int]:
    """The widest columns give way until all find room; below its longest word none does while others can."""
    fitted = list(widths)
    for least in (words, [1] * len(fitted)):
        while sum(fitted) > room and (wide := [at for at, width in enumerate(fitted) if width > least[at]]):
            fitted[max(wide, key=fitted.__getitem__)] -= 1
    return fitted


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
    return Text(text, style="red" if word == "violated" else _STYLES.get(text, ""), overflow="fold")


def _longest_word(texts: Sequence[str]) -> int:
    return max((cell_len(word) for text in texts for word in text.split()), default=0)


def _width(texts: Sequence[str]) -> int:
    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)
