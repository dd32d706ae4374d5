"""One worker process as the proxy holds it: its connection, its handle, and what it wrote."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import weakref
from pathlib import Path
from typing import Protocol

from ..worker.capture import LOGGED, read_memory
from .outcome import Cause, Failure

_PAGE = os.sysconf("SC_PAGE_SIZE")


class User(Protocol):
    """Who uses a worker at the moment, and hears of what happens to it."""

    def readable(self) -> None:
        """The worker wrote, or closed its side."""

    def ended(self) -> None:
        """Its parent has reported its end; `Worker.status` is set."""


class Worker:
    """The handles of a worker. `pidfd` stays ours even when the process id is given to another process."""

    def __init__(self, pid: int, connection: socket.socket, pidfd: int, stdout: int, stderr: int) -> None:
        connection.setblocking(False)
        self.pid = pid
        self.connection = connection
        self._pidfd = pidfd
        self._stderr = stderr
        self.user: User | None = None
        self.calls = 0
        #: Resident bytes when it became ready.
        self.first_size = 0
        #: The failure that we ended it for, where it was us and not the unit.
        self.ended_for: Failure | None = None
        #: Whether its end was reported, and how it ended, where that is known.
        self.reported = False
        self.status: int | None = None
        weakref.finalize(self, _close, connection, (pidfd, stdout, stderr))

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def lives(self) -> bool:
        # Not by select, which knows no descriptors from 1024 on: a busy proxy has more.
        ended = select.poll()
        ended.register(self._pidfd, select.POLLIN)
        return not ended.poll(0)

    def size(self) -> int:
        """Resident bytes now; 0 when it has ended."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[1]) * _PAGE
        except (OSError, IndexError):
            return 0

    def stderr_text(self) -> str:
        """The last that it wrote to stderr in its last call: where a crash happened, for the log."""
        return read_memory(self._stderr)[-LOGGED:]

    def why_it_ended(self) -> Failure | None:
        """Why it ended, as the fault of the unit it ran; None when something outside has killed it."""
        if self.ended_for is not None:
            return self.ended_for
        if not self.reported and self.lives():
            return Failure(Cause.CRASHED, "closed its worker's connection to the proxy")
        if self.status is None or self.status == -signal.SIGKILL:
            return None
        if self.status < 0:
            return Failure(Cause.CRASHED, f"crashed its worker process ({_signal_name(-self.status)})")
        return Failure(Cause.EXITED, f"ended its worker process with exit status {self.status}")


def _close(connection: socket.socket, handles: tuple[int, ...]) -> None:
    """Release what a worker held, once neither its pool nor a call refers to it any more."""
    connection.close()
    for handle in handles:
        os.close(handle)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
