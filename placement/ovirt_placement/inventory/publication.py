"""The published file: written whole and renamed into place, decoded by a reader only when it has changed."""

from __future__ import annotations

import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ovirt_placement.model import Snapshot

FILE_NAME = "snapshot"
SOCKET_NAME = "socket"

_MAGIC = b"OVPLACE2"
#: Magic, the machine's boot, the version, the payload's length, the moments.
_HEADER = struct.Struct(">8s16sQQ3d")
#: The moments by themselves: they move on while the content stays.
_MOMENTS = struct.Struct(">3d")
_MOMENTS_OFFSET = _HEADER.size - _MOMENTS.size
_NEVER = float("-inf")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Moments:
    """Since when the parts of a snapshot may be out of date, by `now`."""

    #: When the engine was last asked what has changed; what happened later may be missing.
    read_at: float
    #: When all was last read, whatever had changed.
    whole_at: float = _NEVER
    #: When it was last read how busy hosts and VMs are; minus infinity for never.
    statistics_at: float = _NEVER


@dataclass(frozen=True)
class Publication:
    snapshot: Snapshot
    #: The same number means the same content; a higher one is newer, also after the service restarted.
    version: int
    moments: Moments

    @property
    def age_seconds(self) -> float:
        return now() - self.moments.read_at

    @property
    def whole_age_seconds(self) -> float | None:
        """How long ago all was last read, whatever had changed; None if that was never."""
        return _age(self.moments.whole_at)

    @property
    def statistics_age_seconds(self) -> float | None:
        """How old the figures of CPU and memory use are; None if there are none."""
        return _age(self.moments.statistics_at)


def _age(moment: float) -> float | None:
    return None if moment == _NEVER else now() - moment


def now() -> float:
    """Seconds since the machine started: one clock for all its processes, that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def write(directory: Path, version: int, moments: Moments, payload: bytes) -> None:
    """Publish an encoded snapshot: readers find the file before or after, never in between."""
    header = _HEADER.pack(_MAGIC, boot_id(), version, len(payload), *_packed(moments))
    temporary = directory / f"{FILE_NAME}.new"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640), "wb") as file:
        file.write(header)
        file.write(payload)
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
        os.pwrite(file, _MOMENTS.pack(*_packed(moments)), _MOMENTS_OFFSET)
    finally:
        os.close(file)
    return True


def _packed(moments: Moments) -> tuple[float, float, float]:
    return moments.read_at, moments.whole_at, moments.statistics_at


def read(directory: Path, known: Publication | None = None) -> Publication | None:
    """Read what is published; the known publication spares the decoding of what has not changed.

    None if there is nothing, or nothing of this run of the machine.
    """
    try:
        with (directory / FILE_NAME).open("rb", buffering=0) as file:
            header = file.read(_HEADER.size)
            if len(header) != _HEADER.size:
                return None
            magic, boot, version, length, *found = _HEADER.unpack(header)
            if magic != _MAGIC or boot != boot_id():
                return None
            moments = Moments(*found)
            if known is not None and known.version == version:
                return Publication(known.snapshot, version, moments)
            payload = file.read(length)
    except OSError:
        return None
    try:
        return Publication(msgspec.msgpack.decode(payload, type=Snapshot), version, moments)
    except msgspec.MsgspecError:
        return None  # written by another release


def boot_id() -> bytes:
    """Name this run of the machine: a clock that starts with it means nothing to the next."""
    return bytes.fromhex(_BOOT_ID.read_text().strip().replace("-", ""))
