"""The state as the service saves it: after a restart it answers by that at once, until it has read.

Only the service reads it, of this run of the machine: who else wants the state asks at the socket.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import msgspec

from ovirt_placement.inventory.published import sections
from ovirt_placement.inventory.published.boot import boot_id
from ovirt_placement.inventory.published.publication import Moments, Outcomes, Publication, now
from ovirt_placement.inventory.published.replacing import replaced
from ovirt_placement.inventory.published.sections import Section
from ovirt_service.regular_files import open_regular

FILE_NAME = "state"
#: Larger than any engine's: who can write here must not fill the memory.
_LARGEST = 1 << 30


_CHECKSUM_SIZE = 4


class _Saved(msgspec.Struct, frozen=True, array_like=True):
    #: Of the machine's run, since moments count from there, and of what was saved: another is not read.
    boot: bytes
    release: str
    version: int
    moments: tuple[float, ...]
    versions: tuple[int, ...]
    contents: tuple[bytes, ...]


#: What is saved holds records of the model: another shape of these is another release.
RELEASE = "1"


def save(directory: Path, version: int, moments: Moments, encoded: tuple[Section, ...]) -> None:
    """Put the state in the place of the one that was saved before. Raises `OSError`."""
    saved = _Saved(
        boot_id(),
        RELEASE,
        version,
        tuple(moments),
        tuple(each.version for each in encoded),
        tuple(each.content for each in encoded),
    )
    content = msgspec.msgpack.encode(saved)
    replaced(directory / FILE_NAME, (_checksum(content), content))


def restore(directory: Path, oldest: float) -> Publication | None:
    """What was saved, if it holds at this moment or later; None if it is older, damaged, or is not there."""
    try:
        with open(open_regular(directory / FILE_NAME, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            if os.fstat(file.fileno()).st_size > _LARGEST:
                return None
            checksum, content = file.read(_CHECKSUM_SIZE), file.read()
        if checksum != _checksum(content):
            return None
        saved = msgspec.msgpack.decode(content, type=_Saved)
        moments = Moments(*saved.moments)
        if (saved.boot, saved.release) != (boot_id(), RELEASE) or not oldest <= moments.as_of <= now():
            return None
        decoded = sections.decode(saved.versions, saved.contents.__getitem__)
        return Publication(saved.version, moments, decoded, Outcomes(0, 0, 0))
    except (OSError, ValueError, IndexError, TypeError, msgspec.MsgspecError):
        return None


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_SIZE, "big")
