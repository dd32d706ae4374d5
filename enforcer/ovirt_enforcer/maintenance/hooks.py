"""Runs commands of the administrator besides the loop: one that holds hosts back, and the work itself."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Final

#: So much of what a command prints is read.
_MOST_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class HookResult:
    """How a command ended."""

    #: Its exit status, negative for a signal; None while it runs.
    status: int | None
    #: The last line that it has printed.
    text: str = ""


class Hooks:
    """The commands that run, and how others have ended, by what they were run for; for one thread.

    A process that is started again knows of none, and runs them again: they must bear that.
    """

    def __init__(self) -> None:
        self._running: dict[tuple[str, ...], tuple[subprocess.Popen[bytes], IO[bytes]]] = {}
        self._ended: dict[tuple[str, ...], HookResult] = {}

    def start(self, key: tuple[str, ...], command: str, environment: Mapping[str, str]) -> None:
        """Run a command; one that cannot be run has ended with status 127."""
        output = tempfile.TemporaryFile()  # noqa: SIM115 - read and closed once the command has ended
        try:
            process = subprocess.Popen(  # noqa: S603 - the command from the enforcer's configuration
                shlex.split(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            output.close()
            self._ended[key] = HookResult(127, str(error))
        else:
            self._running[key] = process, output

    def result(self, key: tuple[str, ...]) -> HookResult | None:
        """How a command stands; None if it was not run."""
        if key in self._running:
            process, output = self._running[key]
            status = process.poll()
            if status is None:
                return HookResult(None)
            self._ended[key] = HookResult(status, _last_line(output) or f"exit status {status}")
            output.close()
            del self._running[key]
        return self._ended.get(key)

    def forget(self, key: tuple[str, ...]) -> None:
        """Let a command be run again."""
        self._ended.pop(key, None)


def _last_line(output: IO[bytes]) -> str:
    end = output.seek(0, os.SEEK_END)
    output.seek(max(0, end - _MOST_BYTES))
    lines = output.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
