"""Shows an answer to a user who waits for it at a terminal: a bar while it is made, then page by page."""

import io
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TextIO

from ovirt_service.text import escaped, legible

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
    # It takes long to load, and is rarely needed.
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
    pager = shlex.split(os.environ.get("PAGER", "less"))
    fits = text.count("\n") < shutil.get_terminal_size().lines
    if fits or not pager or shutil.which(pager[0]) is None:
        terminal.write(text)
        return
    # What less does for git: colours, no page where one is not needed, the text stays on the terminal.
    environment = {"LESS": "FRX", **os.environ}
    encoded = text.encode(terminal.encoding, "backslashreplace")
    subprocess.run(pager, input=encoded, env=environment, check=False)  # noqa: S603 - the user's own pager
