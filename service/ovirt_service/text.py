"""Text that people read: safe to be shown, aligned, folded, and on a terminal page by page.

A name can neither steer a terminal nor pass for a line of ours. What comes from outside has no line breaks
from the moment it is read (`unbroken`), and whatever a command prints goes through `legible`, which shows the
rest of what is not to be seen by its code. What takes long to load, as Rich, is loaded where it is needed.
"""

from __future__ import annotations

import io
import os
import re
import sys
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

#: Control and format characters, surrogates, separators of lines: they would change what a terminal shows.
_UNSHOWN: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}
#: All that anything takes for the end of a line.
_BREAKS: Final = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
#: The styles of our own tables on a terminal; what stands in their cells is shown before.
_TABLE_STYLES: Final = re.compile(r"(\x1b\[(?:0|1|3[1-3])m)")


def code_of(character: str) -> str:
    r"""A character as Python writes it in a text: `\x1b`."""
    return character.encode("unicode_escape").decode()


def unbroken(text: str) -> str:
    """The text on one line: the ends of lines in it are shown by their codes."""
    return text if text.isprintable() else _BREAKS.sub(lambda found: code_of(found[0]), text)


def escaped(text: str) -> str:
    r"""A text that only takes the room of its characters: what would steer a terminal is shown by its code.

    Its lines stay. The codes are those of JSON, as `\u009b`: JSON still says the same.
    """
    if text.isprintable():
        return text
    return "\n".join(line if line.isprintable() else _shown(line) for line in text.split("\n"))


def legible(stream: TextIO, *, styled: bool = False) -> TextIO:
    """A stream that writes everything as `escaped` into another; with the styles of our tables if wanted."""
    return cast("TextIO", _Legible(stream, styled=styled))


class _Legible:
    def __init__(self, stream: TextIO, *, styled: bool) -> None:
        self._stream = stream
        self._styled = styled

    def write(self, text: str) -> int:
        parts = _TABLE_STYLES.split(text) if self._styled else [text]
        shown = (part if place % 2 else escaped(part) for place, part in enumerate(parts))
        self._stream.write("".join(shown))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _shown(line: str) -> str:
    return "".join(_json_code_of(one) if unicodedata.category(one) in _UNSHOWN else one for one in line)


def _json_code_of(character: str) -> str:
    """Beyond 16 bits as a pair of surrogates."""
    encoded = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{encoded[at : at + 2].hex()}" for at in range(0, len(encoded), 2))


def one_line(text: str) -> str:
    """The text, with all that is not visible written as its code."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else code_of(one) for one in text)


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
    "violated": "red",
    "unknown": "yellow",
}


def table(rows: Sequence[Sequence[object]], headers: Sequence[str]) -> str:
    """Make a table for standard output: as wide as it is, or on a terminal as wide as that."""
    from rich.table import Table
    from rich.text import Text

    cells = [[escaped(str(cell)) for cell in row] for row in rows]
    widths, words = _measured(cells, headers)
    gaps = _GAP * (len(widths) - 1)
    console = _console(sum(widths) + _GAP * len(widths))
    if sum(words) > console.width - gaps:
        headers = [_INNER_WORD.sub("\n", header) for header in headers]
        widths, words = _measured(cells, headers)
    grid = Table(box=None, show_header=False, padding=(0, _GAP, 0, 0), pad_edge=False)
    for width in _fitted(widths, words, console.width - gaps):
        grid.add_column(width=width)
    grid.add_row(*(Text(header, style="bold") for header in headers))
    grid.add_row(*(Text("-" * width, no_wrap=True, overflow="crop") for width in widths))
    for row in cells:
        styles = ("red" if one.startswith("violated:") else _STYLES.get(one, "") for one in row)
        grid.add_row(*(Text(*cell, overflow="fold") for cell in zip(row, styles, strict=True)))
    with console.capture() as printed:
        console.print(grid)
    return "\n".join(line.rstrip() for line in printed.get().splitlines())


def show_lines(lines: Iterable[str]) -> None:
    """Print lines to standard output; on a terminal they are folded at words, and go on below indented."""
    for line in lines:
        print("\n".join(_folded(escaped(line))))


def _folded(line: str) -> list[str]:
    """Fold a line at words where the terminal ends; where there is none it stays one."""
    from rich.cells import cell_len

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
    from rich.console import Console

    terminal = sys.stdout is not None and sys.stdout.isatty()
    width_of_terminal = None if terminal else width
    return Console(
        width=width_of_terminal, force_terminal=terminal, markup=False, highlight=False, emoji=False
    )


def _measured(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> tuple[list[int], list[int]]:
    from rich.cells import cell_len

    columns = [*zip(headers, *rows, strict=True)]
    return (
        [max(cell_len(line) for text in column for line in text.split("\n")) for column in columns],
        [max((cell_len(word) for text in column for word in text.split()), default=0) for column in columns],
    )


# -- An answer to a user who waits for it at a terminal: a bar while it is made, then page by page.
#: Whatever takes longer than this, in seconds, gets a bar.
_PATIENCE_SECONDS = 1.0


class _Page(io.StringIO):
    """What is printed for a terminal, and not shown yet."""

    def isatty(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the terminal."""
        return str(getattr(sys.__stdout__, "encoding", "utf-8"))


@contextmanager
def answering(what: str) -> Iterator[None]:
    """Show that `what` takes its time, and show what is printed meanwhile: on a terminal, page by page."""
    with ExitStack() as stack:
        if sys.stdout is not None and sys.stdout.isatty():
            stack.enter_context(_paged())
        # Who reads a pipe or a mail from cron does not wait for it.
        if sys.stderr is not None and sys.stderr.isatty():
            stack.enter_context(_waited_for(what))
        yield


@contextmanager
def _waited_for(what: str) -> Iterator[None]:
    done = threading.Event()
    teller = threading.Thread(target=_bar, args=(what, done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _bar(what: str, done: threading.Event) -> None:
    if done.wait(_PATIENCE_SECONDS):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(what, total=None)
        done.wait()


@contextmanager
def _paged() -> Iterator[None]:
    """Keep what is printed, and show it at the end: in a pager, if the terminal does not show all at once."""
    terminal, page = sys.stdout, _Page()
    sys.stdout = legible(page, styled=True)
    try:
        yield
    finally:
        sys.stdout = terminal
        _show_in_pager(page.getvalue(), terminal)


def say(text: str) -> None:
    """Print what is not part of the answer, as a warning, where it is not taken for the answer."""
    print(escaped(text), file=sys.stderr)


def _show_in_pager(text: str, terminal: TextIO) -> None:
    import shlex
    import shutil
    import subprocess

    pager = shlex.split(os.environ.get("PAGER", "less"))
    fits = text.count("\n") < shutil.get_terminal_size().lines
    if fits or not pager or shutil.which(pager[0]) is None:
        terminal.write(text)
        return
    # What less does for git: colours, no page where one is not needed, the text stays on the terminal.
    environment = {"LESS": "FRX", **os.environ}
    encoded = text.encode(terminal.encoding, "backslashreplace")
    subprocess.run(pager, input=encoded, env=environment, check=False)  # noqa: S603 - the user's own pager
