"""The published file as readers find it: decoded where it has changed, believed where it is whole."""

from __future__ import annotations

import os
import time
import zlib
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from ovirt_placement.inventory.published import layout, sections
from ovirt_placement.inventory.published.boot import boot_id
from ovirt_placement.inventory.published.sections import Decoded
from ovirt_placement.model import Snapshot
from ovirt_service.errors import UserError
from ovirt_service.regular_files import open_regular

FILE_NAME = "snapshot"
SOCKET_NAME = "socket"

#: Moments are overwritten while they are read: a reader who finds half of them looks again.
_LOOKS = 5
_NEVER = float("-inf")


class Moments(NamedTuple):
    """Since when the parts of a snapshot may be out of date, by `now`; minus infinity for never read."""

    #: When the engine was last asked what has changed; what happened later may be missing, and of a few
    #: objects about which it takes long to answer also what happened before.
    read_at: float
    #: When all was last read, whatever had changed.
    whole_at: float = _NEVER
    #: When it was last read how busy hosts and VMs are.
    statistics_at: float = _NEVER
    #: When the store was last asked for placement keys, whether or not it answered.
    store_asked_at: float = _NEVER
    #: When the placement keys were those of the store.
    keys_at: float = _NEVER
    #: When all that placement keys refer to was last read of all VMs; what events reported since is there,
    #: too.
    details_at: float = _NEVER
    #: When the engine last answered all searches for members of placement rules.
    searches_at: float = _NEVER

    @property
    def as_of(self) -> float:
        """What happened before this moment is there, as far as the engine and the store reported it.

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

    @property
    def searches_age_seconds(self) -> float | None:
        """How long ago the searches of placement rules were answered; None if not all were."""
        return _age(self.moments.searches_at)


def _age(moment: float) -> float | None:
    return None if moment == _NEVER else now() - moment


def now() -> float:
    """Seconds since the machine started: one clock for all its processes, that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Damaged(UserError):
    """What is published cannot be believed: it was cut off or changed, or is of another run or release."""

    def __init__(self, version: int) -> None:
        super().__init__(
            "what the inventory has published is damaged: it repairs that when it is asked again"
        )
        #: The version that the file says it has; 0 if it does not say.
        self.version = version


def read(directory: Path, known: Publication | None = None) -> Publication | None:
    """Read what is published; the known publication spares the decoding of what has not changed.

    None if there is nothing. Raises `Damaged`, also for what was left by an earlier run of the machine or is
    of another release: only the service that publishes here can distinguish that from damage.
    """
    try:
        file = open_regular(directory / FILE_NAME, os.O_RDONLY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        raise Damaged(0) from None
    try:
        return _read(file, known)
    except OSError:
        raise Damaged(0) from None
    finally:
        os.close(file)


def _read(file: int, known: Publication | None) -> Publication:
    version, checksum, moments = _head(file)
    if moments.as_of > now():
        raise Damaged(version)  # nothing can be known of what is still to come
    if known is not None and known.version == version:
        return Publication(version, moments, known.decoded)
    table = os.pread(file, layout.TABLE.size, layout.TABLE_OFFSET)
    if len(table) != layout.TABLE.size or zlib.crc32(table) != checksum:
        raise Damaged(version)
    try:
        return Publication(version, moments, _decoded(file, table, None if known is None else known.decoded))
    except ValueError:
        raise Damaged(version) from None


def _head(file: int) -> tuple[int, int, Moments]:
    """Read the version, the checksum of the table, and the moments."""
    for _ in range(_LOOKS):
        head = os.pread(file, layout.TABLE_OFFSET, 0)
        if len(head) != layout.TABLE_OFFSET:
            raise Damaged(0)
        magic, boot, version, checksum = layout.HEADER.unpack_from(head)
        if magic != layout.MAGIC or boot != boot_id():
            raise Damaged(0)
        moments = Moments(*layout.MOMENTS.unpack_from(head, layout.MOMENTS_OFFSET))
        if head[layout.MOMENTS_OFFSET :] == layout.packed_moments(moments):
            return version, checksum, moments
    raise Damaged(version)


def _decoded(file: int, table: bytes, known: Decoded | None) -> Decoded:
    """Decode the sections that have changed; raises `ValueError` where one is not what was written."""
    numbers = layout.TABLE.unpack(table)
    versions, lengths, checksums = (
        numbers[start : start + sections.COUNT] for start in range(0, len(numbers), sections.COUNT)
    )
    starts = tuple(accumulate(lengths, initial=layout.CONTENTS_OFFSET))
    if os.fstat(file).st_size != starts[-1]:
        raise ValueError("the file is not as long as its sections")

    def content(at: int) -> bytes:
        found = os.pread(file, lengths[at], starts[at])
        if zlib.crc32(found) != checksums[at]:
            raise ValueError("a section is not what was written")
        return found

    return sections.decode(versions, content, known)
