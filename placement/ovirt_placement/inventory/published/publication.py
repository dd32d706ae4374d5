"""The published file: written whole and renamed into place, decoded by a reader only where it has changed."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from ovirt_placement.inventory.published import sections
from ovirt_placement.inventory.published.boot import boot_id
from ovirt_placement.inventory.published.sections import Decoded, Section
from ovirt_placement.model import Snapshot
from ovirt_service.errors import UserError

FILE_NAME = "snapshot"
SOCKET_NAME = "socket"

_MAGIC = b"OVPLACE6"
#: Magic, the machine's boot, the version, the checksum of the table.
_HEADER = struct.Struct(">8s16sQQ")
#: The moments, which move on while the content stays; their checksum follows.
_MOMENTS = struct.Struct(">6d")
_CHECKSUM = struct.Struct(">Q")
_MOMENTS_OFFSET = _HEADER.size
_TABLE_OFFSET = _MOMENTS_OFFSET + _MOMENTS.size + _CHECKSUM.size
#: Of all sections the versions, then the lengths, then the checksums; their contents follow.
_TABLE = struct.Struct(f">{3 * sections.COUNT}Q")
#: Moments are overwritten while they are read: a reader who finds half of them looks again.
_LOOKS = 5
_NEVER = float("-inf")


class Moments(NamedTuple):
    """Since when the parts of a snapshot may be out of date, by `now`; minus infinity for never read."""

    #: When the engine was last asked what has changed; what happened later may be missing.
    read_at: float
    #: When all was last read, whatever had changed.
    whole_at: float = _NEVER
    #: When it was last read how busy hosts and VMs are.
    statistics_at: float = _NEVER
    #: When the store was last asked for placement keys, whether or not it answered.
    store_asked_at: float = _NEVER
    #: When the placement keys were those of the store.
    keys_at: float = _NEVER
    #: When all that placement keys refer to was last read of all VMs; what events told since is there, too.
    details_at: float = _NEVER

    @property
    def as_of(self) -> float:
        """What happened before this moment is there, as far as the engine and the store told of it.

        A store that does not answer makes nothing older: what it said last counts.
        """
        return min(self.read_at, self.store_asked_at)


@dataclass(frozen=True)
class Publication:
    #: The same number means the same content; a higher one is newer, also after the service restarted.
    version: int
    moments: Moments
    decoded: Decoded

    @property
    def snapshot(self) -> Snapshot:
        return self.decoded.snapshot

    @property
    def age_seconds(self) -> float:
        """How long ago something may have happened that is not there."""
        return now() - self.moments.as_of

    @property
    def engine_age_seconds(self) -> float | None:
        """How long ago the engine was last asked what has changed."""
        return _age(self.moments.read_at)

    @property
    def whole_age_seconds(self) -> float | None:
        """How long ago all was last read, whatever had changed; None if that was never."""
        return _age(self.moments.whole_at)

    @property
    def statistics_age_seconds(self) -> float | None:
        """How old the figures of CPU and memory use are; None if there are none."""
        return _age(self.moments.statistics_at)

    @property
    def keys_age_seconds(self) -> float | None:
        """How long ago the placement keys were those of the store; None if it never could be read."""
        return _age(self.moments.keys_at)

    @property
    def store_answers(self) -> bool:
        """Whether the store could be read when it was last asked for placement keys."""
        return self.moments.keys_at == self.moments.store_asked_at

    @property
    def details_age_seconds(self) -> float | None:
        """How long ago disks, interfaces or owners of all VMs were read; None if not all are there."""
        return _age(self.moments.details_at)


def _age(moment: float) -> float | None:
    return None if moment == _NEVER else now() - moment


def now() -> float:
    """Seconds since the machine started: one clock for all its processes, that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Damaged(UserError):
    """What is published is not what was written: it was cut off, or changed."""

    def __init__(self, version: int) -> None:
        super().__init__("what the inventory has published is damaged: it mends that when it is asked again")
        #: The version that the file says it has.
        self.version = version


class Writer:
    """Publishes one snapshot after the other in a directory, from any thread, until it withdraws them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._encoder = sections.Encoder()
        self._published: tuple[Section, ...] = ()
        self._version = 0
        self._withdrawn = False
        self._lock = threading.Lock()

    def publish(self, snapshot: Snapshot, moments: Moments) -> int:
        """Publish a snapshot, or just its moments if it says the same as the last; return its version.

        Raises `OSError` if that cannot be written.
        """
        with self._lock:
            version = max(self._version + 1, int(now() * 1_000_000))
            encoded = self._encoder.encode(snapshot, version)
            if self._withdrawn or (encoded == self._published and confirm(self._directory, moments)):
                return self._version
            _write(self._directory, version, moments, encoded)
            self._published, self._version = encoded, version
            return version

    def mend(self, moments: Moments) -> int | None:
        """Publish anew what was published if the file does not hold it any more; return its version then.

        Raises `OSError` if that cannot be written.
        """
        with self._lock:
            if self._withdrawn or not self._published or _holds(self._directory, self._published):
                return None
            self._version = max(self._version + 1, int(now() * 1_000_000))
            _write(self._directory, self._version, moments, self._published)
            return self._version

    def withdraw(self) -> None:
        """Take away what is published, and publish no more."""
        with self._lock:
            self._withdrawn = True
            (self._directory / FILE_NAME).unlink(missing_ok=True)


def _write(directory: Path, version: int, moments: Moments, encoded: Sequence[Section]) -> None:
    """Write all of it anew: readers find the file before or after, never in between."""
    temporary = directory / f"{FILE_NAME}.new"
    table = _table(encoded)
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640), "wb") as file:
            file.write(_HEADER.pack(_MAGIC, boot_id(), version, zlib.crc32(table)))
            file.write(_packed(moments))
            file.write(table)
            file.writelines(each.content for each in encoded)
        temporary.rename(directory / FILE_NAME)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)  # it takes the room that others need
        raise


def _table(encoded: Sequence[Section]) -> bytes:
    return _TABLE.pack(
        *(each.version for each in encoded),
        *(len(each.content) for each in encoded),
        *(each.checksum for each in encoded),
    )


def _packed(moments: Moments) -> bytes:
    packed = _MOMENTS.pack(*moments)
    return packed + _CHECKSUM.pack(zlib.crc32(packed))


def _holds(directory: Path, encoded: Sequence[Section]) -> bool:
    """Whether the file holds these sections, byte for byte."""
    try:
        with (directory / FILE_NAME).open("rb") as file:
            if _head(file.fileno()) is None:
                return False
            file.seek(_TABLE_OFFSET)
            found = file.read()
    except (OSError, Damaged):
        return False
    return found == _table(encoded) + b"".join(each.content for each in encoded)


def confirm(directory: Path, moments: Moments) -> bool:
    """Say that what is published still holds, without writing it again; false if somebody took it away.

    A reader who sees them half written finds that their checksum is wrong, and looks again.
    """
    try:
        file = os.open(directory / FILE_NAME, os.O_WRONLY)
    except FileNotFoundError:
        return False
    try:
        os.pwrite(file, _packed(moments), _MOMENTS_OFFSET)
    finally:
        os.close(file)
    return True


def read(directory: Path, known: Publication | None = None) -> Publication | None:
    """Read what is published; the known publication spares the decoding of what has not changed.

    None if there is nothing, or nothing of this run of the machine and of this release. Raises `Damaged`.
    """
    try:
        with (directory / FILE_NAME).open("rb", buffering=0) as file:
            return _read(file.fileno(), known)
    except OSError:
        return None


def _read(file: int, known: Publication | None) -> Publication | None:
    head = _head(file)
    if head is None:
        return None
    version, checksum, moments = head
    if moments.as_of > now():
        raise Damaged(version)  # nothing can be known of what is still to come
    if known is not None and known.version == version:
        return Publication(version, moments, known.decoded)
    table = os.pread(file, _TABLE.size, _TABLE_OFFSET)
    if len(table) != _TABLE.size or zlib.crc32(table) != checksum:
        raise Damaged(version)
    try:
        return Publication(version, moments, _decoded(file, table, None if known is None else known.decoded))
    except ValueError:
        raise Damaged(version) from None


def _head(file: int) -> tuple[int, int, Moments] | None:
    """Read the version, the checksum of the table, and the moments; None if it is not for us."""
    for _ in range(_LOOKS):
        head = os.pread(file, _TABLE_OFFSET, 0)
        if len(head) != _TABLE_OFFSET:
            raise Damaged(0)
        magic, boot, version, checksum = _HEADER.unpack_from(head)
        if magic != _MAGIC or boot != boot_id():
            return None
        moments = Moments(*_MOMENTS.unpack_from(head, _MOMENTS_OFFSET))
        if head[_MOMENTS_OFFSET:] == _packed(moments):
            return version, checksum, moments
    raise Damaged(version)


def _decoded(file: int, table: bytes, known: Decoded | None) -> Decoded:
    """Decode the sections that have changed; raises `ValueError` where one is not what was written."""
    numbers = _TABLE.unpack(table)
    versions, lengths, checksums = (
        numbers[start : start + sections.COUNT] for start in range(0, len(numbers), sections.COUNT)
    )
    starts = tuple(accumulate(lengths, initial=_TABLE_OFFSET + _TABLE.size))
    if os.fstat(file).st_size != starts[-1]:
        raise ValueError("the file is not as long as its sections")

    def content(at: int) -> bytes:
        found = os.pread(file, lengths[at], starts[at])
        if zlib.crc32(found) != checksums[at]:
            raise ValueError("a section is not what was written")
        return found

    return sections.decode(versions, content, known)
