"""A file that all processes here append to, and in which each reads on from where it was.

A record is written by one call, which no other writer splits. One of which a killed writer wrote but a part
is passed over: each begins with a mark and says how long it is and what its bytes add up to.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import stat
import struct
import time
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ovirt_placement.inventory.expected import places
from ovirt_service.regular_files import open_regular
from ovirt_service.saying import Said

_NAME = "journal"
#: What is begun again is renamed when it is whole; what a killed process left of it is removed.
_NEW = "journal.new"
_MARK = b"\xf5\x0aOV"
_HEAD = struct.Struct(">4sII")
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_MODE = 0o660
#: A plugin can write here whatever it likes, and reading that must hold up nobody. Thousands of VMs that are
#: outstanding at once need less than this; a list of hosts is the longest record; and only a writer that is
#: killed leaves a damaged one.
_LONGEST = 32 << 20
_LONGEST_RECORD = 1 << 20
_MOST_DAMAGED = 100
#: Others hold the lock for microseconds, or some ms to begin the journal again; who is stopped meanwhile must
#: hold up nobody's decision.
_PATIENCE_SECONDS = 0.1
_PAUSE_SECONDS = 0.0005
_QUIET_SECONDS = 600.0

_log = logging.getLogger(__name__)
_said = Said(_QUIET_SECONDS)


class Journal:
    """The journal in one folder, read as far as this object has."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        #: Joined by hand: every decision asks for them.
        self._path, self._new = f"{folder}/{_NAME}", f"{folder}/{_NEW}"
        self._file: int | None = None
        self._close: Callable[[], object] = _nothing
        #: The file is kept open, so that no later one can have its number.
        self._identity = (-1, -1)
        #: How much of it was looked at, and the end of the last whole record in that.
        self._seen = self._at = 0
        #: Whether what stands there was not to be read: it is to be begun again.
        self.damaged = False

    def news(self) -> tuple[bool, list[bytes]]:
        """Return what was appended since the last call, and whether all read before is to be forgotten."""
        known = self._file is not None
        try:
            found = os.lstat(self._path)
            if (found.st_dev, found.st_ino) == self._identity and found.st_size >= self._seen:
                return False, self._read(found.st_size)
            self._open()
            return True, self._read(None)
        except FileNotFoundError:
            self._forget()
        except OSError as error:
            self._forget()
            self.damaged = True
            if _said.is_news(self._path):
                _log.warning(
                    "%s cannot be read (%s): what it expects is forgotten", self._path, error.strerror
                )
        return known, []

    def is_current(self) -> bool:
        """Whether no other file has taken the place of the one that was read."""
        try:
            found = os.lstat(self._path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity

    @contextlib.contextmanager
    def locked(self, *, alone: bool = False) -> Iterator[None]:
        """Let nobody begin the journal again meanwhile; alone, append either.

        Raises `OSError` if that cannot be, or takes too long.
        """
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
        try:
            _lock(folder, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield
        finally:
            os.close(folder)

    def append(self, *records: bytes) -> int:
        """Append records, which come together or not at all; return how long the journal is now.

        For who holds the lock. Raises `OSError` if there is no journal yet, or something else in its place.
        """
        file = open_regular(self._path, os.O_WRONLY | os.O_APPEND | _FLAGS)
        try:
            os.write(file, b"".join(map(_framed, records)))
            return os.lseek(file, 0, os.SEEK_END)
        finally:
            os.close(file)

    def begin(self) -> None:
        """Make a journal if there is none, or none that can be read. Raises `OSError` if that cannot be."""
        places.make(self._folder)
        with self.locked(alone=True):
            if not self._is_usable():
                self.begin_again(())

    def begin_again(self, records: Iterable[bytes]) -> None:
        """Let these records be all that there is; for who holds the lock alone."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._new)
        file = os.open(self._new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, _MODE)
        try:
            os.fchmod(file, _MODE)
            os.write(file, b"".join(map(_framed, records)))
        finally:
            os.close(file)
        os.rename(self._new, self._path)

    def remove(self) -> None:
        """Leave nothing; for who holds the lock alone."""
        os.unlink(self._path)

    def _is_usable(self) -> bool:
        try:
            found = os.lstat(self._path)
        except OSError:
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size <= _LONGEST and os.access(self._path, os.W_OK)

    def _open(self) -> None:
        self._forget()
        self._file = open_regular(self._path, os.O_RDONLY | _FLAGS)
        self._close = weakref.finalize(self, os.close, self._file)
        found = os.fstat(self._file)
        self._identity = found.st_dev, found.st_ino

    def _forget(self) -> None:
        self._close()
        self._file, self._identity, self._seen, self._at = None, (-1, -1), 0, 0
        self.damaged = False

    def _read(self, size: int | None) -> list[bytes]:
        if self._file is None or size == self._seen:
            return []
        size = os.fstat(self._file).st_size
        if size > _LONGEST:
            raise OSError(errno.EFBIG, "too long")
        content = os.pread(self._file, size - self._at, self._at)
        self._seen = self._at + len(content)
        records, end = _whole(content)
        self._at += end
        return records


def _nothing() -> None:
    """No file is open."""


def _lock(folder: int, kind: int) -> None:
    until = 0.0
    while True:
        try:
            fcntl.flock(folder, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            until = until or time.monotonic() + _PATIENCE_SECONDS
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _framed(record: bytes) -> bytes:
    return _HEAD.pack(_MARK, len(record), zlib.crc32(record)) + record


def _whole(content: bytes) -> tuple[list[bytes], int]:
    """The whole records, and where the last of them ends: what follows may still be under way.

    Raises `OSError` if too many are damaged: only we write records, and a process that is killed damages one.
    """
    records: list[bytes] = []
    end = at = damaged = 0
    while (at := content.find(_MARK, at)) >= 0 and at + _HEAD.size <= len(content):
        _, length, total = _HEAD.unpack_from(content, at)
        record = content[at + _HEAD.size : at + _HEAD.size + min(length, _LONGEST_RECORD)]
        if len(record) == length and zlib.crc32(record) == total:
            records.append(record)
            end = at = at + _HEAD.size + length
            continue
        at += 1
        damaged += 1
        if damaged > _MOST_DAMAGED:
            raise OSError(errno.EBADMSG, "damaged")
    return records, end
