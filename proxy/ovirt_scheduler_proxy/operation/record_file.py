"""The file of decisions: bounded in days and size, and never in the way of a decision when it fails."""

from __future__ import annotations

import contextlib
import glob
import json
import logging
import os
import time
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

_DAY: Final = 24 * 3600.0
#: A clock that goes otherwise than the machine's own by more than this was set: nothing is deleted by it now.
_JUMP: Final = 3600.0
#: A new file has the rights that the service's umask leaves: under systemd, its group may read.
_MODE: Final = 0o660


class RecordFile:
    """Lines are appended; a full file, or one a day old, becomes FILE.1, that one FILE.2 and so on.

    For one thread at a time. No method raises: an error is reported once, until it is over.
    """

    def __init__(self, path: Path, size: int, files: int, days: float) -> None:
        """`size` in bytes; at most `files` old files are kept, and none for longer than `days`."""
        self._path = path
        self._size = size
        self._files = files
        self._seconds = days * _DAY
        self._descriptor = -1
        self._began = 0.0
        #: Whether a line was written by half.
        self._torn = False
        self._lost = 0
        self._failing = False
        #: What both clocks said when it was last seen what is old: that of the day, and the machine's own.
        self._seen = time.time(), _boot_clock()

    def open(self) -> None:
        """Open it now, so that it is reported at once if that cannot be done."""
        try:
            self._open()
        except OSError as error:
            self._fails(error)

    def write(self, text: str) -> None:
        """Append lines."""
        parts = self._parts(f"{text}\n".encode("utf-8", "replace"))
        for at, part in enumerate(parts):
            try:
                self._make_ready(len(part))
                self._append(part)
            except OSError as error:
                self._lost += sum(rest.count(b"\n") for rest in parts[at:])
                self._fails(error)
                self.close()
                return
        if self._failing:
            log.warning("decisions are recorded again in %s: %d were lost", self._path, self._lost)
            self._failing, self._lost = False, 0

    def close(self) -> None:
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1

    def _parts(self, data: bytes) -> list[bytes]:
        """Many lines that came at once, one by one where they would carry a file far beyond its size."""
        return [data] if len(data) <= self._size // 8 else data.splitlines(keepends=True)

    def _fails(self, error: OSError) -> None:
        if not self._failing:
            log.warning("decisions are not recorded: %s: %s", self._path, error.strerror)
        self._failing = True

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, _MODE)
        size = os.fstat(self._descriptor).st_size
        self._began = _time_of(os.pread(self._descriptor, 64, 0)) if size else time.time()
        # A process that died may have left half a line.
        self._torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"

    def _make_ready(self, more: int) -> None:
        """Have a file open that has room, and is the one that bears the name."""
        if self._descriptor >= 0 and not self._bears_name():
            self.close()
        if self._descriptor < 0:
            self._open()
        size = os.fstat(self._descriptor).st_size
        if size and (size + more > self._size or not -_DAY < time.time() - self._began < _DAY):
            self._rotate()
        if _boot_clock() - self._seen[1] > _JUMP:
            self._expire()

    def _bears_name(self) -> bool:
        """Whether nobody has moved it away, or deleted it."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except FileNotFoundError:
            return False

    def _append(self, data: bytes) -> None:
        left = memoryview(b"\n" + data if self._torn else data)
        while left:
            written = os.write(self._descriptor, left)
            left = left[written:]
            self._torn = bool(left)

    def _rotate(self) -> None:
        self.close()
        last = self._numbered(self._files)
        if self._files:
            last.unlink(missing_ok=True)
            for number in range(self._files, 0, -1):
                older = self._numbered(number - 1)
                if older.exists():
                    older.rename(self._numbered(number))
        else:
            self._path.unlink(missing_ok=True)
        self._open()
        self._expire()

    def _expire(self) -> None:
        """Delete what was last written to longer ago than is kept, unless the clock was set meanwhile."""
        wall, machine = time.time(), _boot_clock()
        went = wall - self._seen[0], machine - self._seen[1]
        self._seen = wall, machine
        if abs(went[0] - went[1]) > _JUMP:
            return
        for file in self._path.parent.glob(f"{glob.escape(self._path.name)}.*"):
            number = file.suffix[1:]
            with contextlib.suppress(FileNotFoundError):
                if number.isdecimal() and (
                    int(number) > self._files or wall - file.stat().st_mtime > self._seconds
                ):
                    file.unlink()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path


def _time_of(head: bytes) -> float:
    """When the line was written that begins so; now, where it does not say."""
    written, _, _ = head.partition(b",")
    try:
        return float(json.loads(written + b"}")["time"])
    except (ValueError, KeyError, TypeError):
        return time.time()


def _boot_clock() -> float:
    """Seconds since the machine was booted, which nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
