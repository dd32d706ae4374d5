"""The layout of the published file: a header, moments that are overwritten in place, a table, sections."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from ovirt_placement.inventory.published import sections
from ovirt_placement.inventory.published.boot import boot_id
from ovirt_placement.inventory.published.sections import Section

MAGIC = b"OVPLACE7"
#: Magic, the machine's boot, the version, the checksum of the table.
HEADER = struct.Struct(">8s16sQQ")
#: The moments, which move on while the content stays; their checksum follows.
MOMENTS = struct.Struct(">7d")
_CHECKSUM = struct.Struct(">Q")
MOMENTS_OFFSET = HEADER.size
TABLE_OFFSET = MOMENTS_OFFSET + MOMENTS.size + _CHECKSUM.size
#: Of all sections the versions, then the lengths, then the checksums; their contents follow.
TABLE = struct.Struct(f">{3 * sections.COUNT}Q")
CONTENTS_OFFSET = TABLE_OFFSET + TABLE.size


def packed_header(version: int, table: bytes) -> bytes:
    return HEADER.pack(MAGIC, boot_id(), version, zlib.crc32(table))


def packed_moments(moments: Sequence[float]) -> bytes:
    packed = MOMENTS.pack(*moments)
    return packed + _CHECKSUM.pack(zlib.crc32(packed))


def packed_table(encoded: Sequence[Section]) -> bytes:
    return TABLE.pack(
        *(each.version for each in encoded),
        *(len(each.content) for each in encoded),
        *(each.checksum for each in encoded),
    )
