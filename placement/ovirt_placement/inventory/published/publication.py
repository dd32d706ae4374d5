"""The published file: written whole and renamed into place, decoded by a reader only where it has changed."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

from ovirt_placement.inventory.published import sections
from ovirt_placement.inventory.published.sections import Decoded, Section
from ovirt_placement.model import Snapshot

FILE_NAME = "snapshot"
SOCKET_NAME = "socket"

_MAGIC = b"OVPLACE4"
#: Magic, the machine's boot, the version, the moments.
_HEADER = struct.Struct(">8s16sQ6d")
#: The moments by themselves: they move on while the content stays.
_MOMENTS = struct.Struct(">6d")
_MOMENTS_OFFSET = _HEADER.size - _MOMENTS.size
#: Of all sections the versions, then the lengths; their contents follow.
_TABLE = struct.Struct(f">{2 * sections.COUNT}Q")
_NEVER = float("-inf")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Moments:
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

    def withdraw(self) -> None:
        """Take away what is published, and publish no more."""
        with self._lock:
            self._withdrawn = True
            (self._directory / FILE_NAME).unlink(missing_ok=True)


def _write(directory: Path, version: int, moments: Moments, encoded: Sequence[Section]) -> None:
    """Write all of it anew: readers find the file before or after, never in between."""
    temporary = directory / f"{FILE_NAME}.new"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640), "wb") as file:
        file.write(_HEADER.pack(_MAGIC, boot_id(), version, *astuple(moments)))
        file.write(_TABLE.pack(*(each.version for each in encoded), *(len(each.content) for each in encoded)))
        file.writelines(each.content for each in encoded)
    temporary.rename(directory / FILE_NAME)


def confirm(directory: Path, moments: Moments) -> bool:
    """Say that what is published still holds, without writing it again; false if somebody took it away.

    Each moment is eight bytes at a multiple of eight, which no reader can see half written.
    """
    try:
        file = os.open(directory / FILE_NAME, os.O_WRONLY)
    except FileNotFoundError:
        return False
    try:
        os.pwrite(file, _MOMENTS.pack(*astuple(moments)), _MOMENTS_OFFSET)
    finally:
        os.close(file)
    return True


def read(directory: Path, known: Publication | None = None) -> Publication | None:
    """Read what is published; the known publication spares the decoding of what has not changed.

    None if there is nothing, or nothing of this run of the machine and of this release.
    """
    try:
        with (directory / FILE_NAME).open("rb", buffering=0) as file:
            return _read(file.fileno(), known)
    except (OSError, ValueError):
        return None


def _read(file: int, known: Publication | None) -> Publication | None:
    header = os.pread(file, _HEADER.size, 0)
    if len(header) != _HEADER.size:
        return None
    magic, boot, version, *moments = _HEADER.unpack(header)
    if magic != _MAGIC or boot != boot_id():
        return None
    if known is not None and known.version == version:
        return Publication(version, Moments(*moments), known.decoded)
    table = os.pread(file, _TABLE.size, _HEADER.size)
    if len(table) != _TABLE.size:
        return None
    numbers = _TABLE.unpack(table)
    versions, lengths = numbers[: sections.COUNT], numbers[sections.COUNT :]
    starts = tuple(accumulate(lengths, initial=_HEADER.size + _TABLE.size))

    if os.fstat(file).st_size != starts[-1]:
        return None
    decoded = sections.decode(
        versions, lambda at: os.pread(file, lengths[at], starts[at]), None if known is None else known.decoded
    )
    return Publication(version, Moments(*moments), decoded)


@cache
def boot_id() -> bytes:
    """Name this run of the machine: a clock that starts with it means nothing to the next."""
    return bytes.fromhex(_BOOT_ID.read_text().strip().replace("-", ""))
