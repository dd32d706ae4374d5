"""Real processes on free loopback ports: started, awaited by their readiness line, and all ended again."""

import contextlib
import os
import selectors
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from rich.text import Text

#: Columns of a terminal, and of the story.
WIDTH = 100
#: Seconds that a process may take to be ready, or to end after SIGTERM.
PATIENCE_SECONDS = 120


class ProcessFailed(Exception):
    """A process ended or stayed silent; the text carries the end of its log."""


class Processes:
    """The commands of this project, each as a process of its own; all end with the `with` block."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}
        self._running: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(list(self._running)):
            self.stop(name)

    def start(self, name: str, arguments: Sequence[str]) -> str:
        """Start `arguments` and return its first line of output, which says that it is ready.

        Raises `ProcessFailed` when it ends first or is not ready in time.
        """
        with self.log(name).open("w") as log:
            process = subprocess.Popen(
                command(arguments), stdout=subprocess.PIPE, stderr=log, env=self.environment, text=True
            )
        self._running[name] = process
        assert process.stdout is not None  # noqa: S101 - Popen was asked for a pipe
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE_SECONDS):
                raise ProcessFailed(self._last_words(name, f"was not ready after {PATIENCE_SECONDS} s"))
        line = process.stdout.readline().strip()
        if not line:
            raise ProcessFailed(self._last_words(name, f"ended with status {process.wait()}"))
        return line

    def run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, on a terminal of `WIDTH` columns; the output is without colours."""
        terminal, its_end = os.openpty()
        with tempfile.TemporaryFile("w+") as errors, os.fdopen(terminal, "rb", buffering=0) as screen:
            environment = {**self.environment, "COLUMNS": str(WIDTH), "TERM": "xterm"}
            process = subprocess.Popen(
                command(arguments), stdin=subprocess.DEVNULL, stdout=its_end, stderr=errors, env=environment
            )
            os.close(its_end)
            late = threading.Timer(PATIENCE_SECONDS, process.kill)
            late.start()
            shown = bytearray()
            with contextlib.suppress(OSError):  # so Linux reports the end of what is written to a terminal
                while part := screen.read(65536):
                    shown += part
            status = process.wait()
            late.cancel()
            errors.seek(0)
            output = Text.from_ansi(shown.decode().replace("\r\n", "\n")).plain
            return subprocess.CompletedProcess(process.args, status, output, errors.read())

    def stop(self, name: str) -> int:
        """End one process with SIGTERM, by force if it does not listen, and return its exit status."""
        process = self._running.pop(name)
        process.terminate()
        try:
            return process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            if process.stdout:
                process.stdout.close()

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def check(self) -> None:
        """Raise `ProcessFailed` when any process has ended by itself."""
        for name, process in self._running.items():
            if process.poll() is not None:
                raise ProcessFailed(self._last_words(name, f"ended with status {process.returncode}"))

    def _last_words(self, name: str, what: str) -> str:
        lines = self.log(name).read_text().splitlines()[-20:]
        return "\n".join([f"{name} {what}; the end of its log:", *lines])


def command(arguments: Sequence[str]) -> list[str]:
    """The installed command next to this interpreter, so that no PATH is needed."""
    return [str(Path(sys.executable).parent / arguments[0]), *arguments[1:]]


def address(ready_line: str) -> str:
    """The URL at the end of a readiness line."""
    return ready_line.rsplit(" ", 1)[-1]
