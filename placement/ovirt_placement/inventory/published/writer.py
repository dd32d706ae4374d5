"""Writes what is published, and writes it again when the file is no longer what was written."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ovirt_placement.inventory.published import layout, sections
from ovirt_placement.inventory.published.name_list import NameList
from ovirt_placement.inventory.published.publication import FILE_NAME, Moments, now
from ovirt_placement.inventory.published.replacing import identity, replaced
from ovirt_placement.inventory.published.sections import Section
from ovirt_placement.model import Snapshot
from ovirt_service.regular_files import open_regular
from ovirt_service.saying import Said

#: A file system notes the moment of a change in steps: two changes within one of them look like one.
_TICK_NS = 50_000_000
#: Who damages it again and again does not fill the log: the metric counts each time.
_QUIET_SECONDS = 10.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Written:
    """What the file is to be: its inode with owner, mode and length, and its bytes."""

    identity: tuple[int, ...]
    header: bytes
    moments: bytes
    table: bytes
    encoded: tuple[Section, ...]

    @property
    def head(self) -> bytes:
        return self.header + self.moments + self.table


class Writer:
    """Publishes one snapshot after the other in a directory, from any thread, until it withdraws them."""

    def __init__(self, directory: Path, on_repair: Callable[[], object] = lambda: None) -> None:
        """`on_repair` is called each time that the file is not what was written, and is written again."""
        self._directory = directory
        self._on_repair = on_repair
        self._encoder = sections.Encoder()
        self._names = NameList(directory)
        self._written: _Written | None = None
        #: When the file was last changed, as of when its sections were compared; 0 if they are to be.
        self._compared_ns = 0
        self._version = 0
        self._withdrawn = False
        self._said = Said(_QUIET_SECONDS)
        self._lock = threading.Lock()

    def publish(self, snapshot: Snapshot, moments: Moments) -> int:
        """Publish a snapshot, or just its moments if it says the same as the last; return its version.

        Raises `OSError` if that cannot be written.
        """
        with self._lock:
            if self._withdrawn:
                return self._version
            encoded = self._encoder.encode(snapshot, self._next_version())
            if self._written is None or encoded != self._written.encoded:
                self._write(moments, encoded)
                self._names.publish(snapshot)
                return self._version
            if damage := self._confirm(self._written, moments):
                return self._rewrite(self._written, moments, damage)
            return self._version

    def repair(self, moments: Moments, *, reported: bool = False) -> int | None:
        """Publish again what was published if the file is not what was written; return its version then.

        The sections are compared where the file has changed, or where a reader `reported` that it is damaged.
        Raises `OSError` if that cannot be written.
        """
        with self._lock:
            if self._withdrawn or self._written is None:
                return None
            if reported:
                self._compared_ns = 0
            damage = self._damage(self._written)
            return self._rewrite(self._written, moments, damage) if damage else None

    def withdraw(self) -> None:
        """Take away what is published, and publish no more."""
        with self._lock:
            self._withdrawn = True
            self._names.withdraw()
            with contextlib.suppress(OSError):  # a directory, say, that somebody put there: it is not ours
                (self._directory / FILE_NAME).unlink()

    def _next_version(self) -> int:
        return max(self._version + 1, int(now() * 1_000_000))

    def _rewrite(self, written: _Written, moments: Moments, damage: str) -> int:
        version = self._write(moments, written.encoded)
        self._on_repair()
        if self._said.is_news("damage"):
            _log.warning("what was published was damaged (%s): it is published again", damage)
        return version

    def _write(self, moments: Moments, encoded: tuple[Section, ...]) -> int:
        """Write all of it: readers find the file before or after, never in between."""
        version, table = self._next_version(), layout.packed_table(encoded)
        header, packed = layout.packed_header(version, table), layout.packed_moments(moments)
        contents = (header, packed, table, *(each.content for each in encoded))
        written_file = replaced(self._directory / FILE_NAME, contents)
        self._written = _Written(written_file, header, packed, table, encoded)
        self._version, self._compared_ns = version, 0
        return version

    def _confirm(self, written: _Written, moments: Moments) -> str:
        """Say that what is published still holds, without writing it again; return what is damaged, if so.

        A reader who sees the moments half written finds that their checksum is wrong, and looks again.
        """
        try:
            file = _opened(self._directory, os.O_RDWR)
        except OSError as error:
            return str(error.strerror)
        try:
            if damage := _damaged_head(file, written):
                return damage
            packed = layout.packed_moments(moments)
            os.pwrite(file, packed, layout.MOMENTS_OFFSET)
        finally:
            os.close(file)
        self._written = replace(written, moments=packed)
        return ""

    def _damage(self, written: _Written) -> str:
        """What is not as it was written; empty if all is."""
        try:
            file = _opened(self._directory, os.O_RDONLY)
            try:
                return _damaged_head(file, written) or self._damaged_sections(file, written)
            finally:
                os.close(file)
        except OSError as error:
            return str(error.strerror)

    def _damaged_sections(self, file: int, written: _Written) -> str:
        changed_ns = os.fstat(file).st_ctime_ns
        if changed_ns == self._compared_ns:
            return ""
        at = layout.CONTENTS_OFFSET
        for each in written.encoded:
            if os.pread(file, len(each.content), at) != each.content:
                return "a section"
            at += len(each.content)
        self._compared_ns = changed_ns if time.time_ns() - changed_ns > _TICK_NS else 0
        return ""


def _opened(directory: Path, flags: int) -> int:
    return open_regular(directory / FILE_NAME, flags | os.O_NOFOLLOW)


def _damaged_head(file: int, written: _Written) -> str:
    if identity(os.fstat(file)) != written.identity:
        return "another file, owner, mode or length"
    return "" if os.pread(file, layout.CONTENTS_OFFSET, 0) == written.head else "the header"
