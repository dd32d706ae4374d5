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

_MAGIC = b"OVPLACE1"
#: Magic, the machine's boot, the version, the moment of reading, the payload's length.
_HEADER = struct.Struct(">8s16sQdQ")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Publication:
    snapshot: Snapshot
    #: The same number means the same content; a higher one is newer, also after the service restarted.
    version: int
    #: When the reading of the engine began, by `now`; what happened later may be missing.
    read_at: float

    @property
    def age_seconds(self) -> float:
        return now() - self.read_at


def now() -> float:
    """Seconds since the machine started: one clock for all its processes, that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def write(directory: Path, version: int, read_at: float, payload: bytes) -> None:
    """Publish an encoded snapshot: readers find the file before or after, never in between."""
    header = _HEADER.pack(_MAGIC, boot_id(), version, read_at, len(payload))
    temporary = directory / f"{FILE_NAME}.new"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640), "wb") as file:
        file.write(header)
        file.write(payload)
    temporary.rename(directory / FILE_NAME)


def read(directory: Path, known: Publication | None = None) -> Publication | None:
    """Read what is published; the known publication spares the decoding of what has not changed.

    None if there is nothing, or nothing of this run of the machine.
    """
    try:
        with (directory / FILE_NAME).open("rb", buffering=0) as file:
            header = file.read(_HEADER.size)
            if len(header) != _HEADER.size:
                return None
            magic, boot, version, read_at, length = _HEADER.unpack(header)
            if magic != _MAGIC or boot != boot_id():
                return None
            if known is not None and known.version == version:
                return Publication(known.snapshot, version, read_at)
            payload = file.read(length)
    except OSError:
        return None
    try:
        return Publication(msgspec.msgpack.decode(payload, type=Snapshot), version, read_at)
    except msgspec.MsgspecError:
        return None  # written by another release


def boot_id() -> bytes:
    """Name this run of the machine: a clock that starts with it means nothing to the next."""
    return bytes.fromhex(_BOOT_ID.read_text().strip().replace("-", ""))
