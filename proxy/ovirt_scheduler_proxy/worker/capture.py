"""Catches what a unit writes to stdout and stderr, by file descriptor, so that C code counts too."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os

#: A weight for each of 50,000 hosts can be printed in this; a flood stops here.
STDOUT_LIMIT = 4 << 20
STDERR_LIMIT = 256 << 10

#: As much of what a unit printed goes to the log.
LOGGED = 32 << 10


def create_memory(name: str, limit: int) -> int:
    """An anonymous file that cannot grow past `limit`: what writes on gets an error and costs no memory."""
    memory = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(memory, limit)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return memory


def read_memory(memory: int) -> str:
    """What was written so far. Works on a worker's memory from outside too, even after it died."""
    written = os.lseek(memory, 0, os.SEEK_CUR)
    return os.pread(memory, written, 0).decode(errors="replace") if written else ""


class Capture:
    """One of the descriptors 1 and 2, led into memory.

    The position in the memory is shared with every process that inherits the descriptor, so that it shows
    how much all of them wrote.
    """

    def __init__(self, memory: int, number: int, limit: int) -> None:
        self._memory = memory
        self._number = number
        self._limit = limit
        self.stream = self._open()

    def repair(self) -> None:
        """Make good what the last unit closed or led elsewhere."""
        os.dup2(self._memory, self._number)
        if not self._usable:
            self.stream = self._open()

    def begin(self) -> None:
        """Start afresh."""
        os.lseek(self._memory, 0, os.SEEK_SET)

    def end(self) -> str:
        """Return what was written since `begin`."""
        if self._usable:
            # Where the memory is full or the descriptor closed, what is lost could not be an answer anyway.
            with contextlib.suppress(OSError):
                self.stream.flush()
        return read_memory(self._memory)

    @property
    def _usable(self) -> bool:
        """Whether the unit has left our stream open, and its buffer in it."""
        try:
            return not self.stream.closed
        except ValueError:
            return False

    @property
    def full(self) -> bool:
        return os.lseek(self._memory, 0, os.SEEK_CUR) >= self._limit

    def _open(self) -> io.TextIOWrapper:
        os.dup2(self._memory, self._number)
        return open(self._number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
