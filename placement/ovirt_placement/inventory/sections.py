"""The sections of a snapshot as it travels to readers: each is encoded, sent, decoded when it changes.

The long lists are dealt out to chunks by ids, so that a record that comes or goes moves no other. The order
that the records have in the snapshot is a section of its own.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter, is_not
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ovirt_placement.model import (
    AffinityGroup,
    AffinityLabel,
    FrozenKeys,
    Host,
    PlacementKey,
    Snapshot,
    StickyCopy,
    Vm,
)

#: A record's chunk is identified by this many values of a byte.
_CHUNKS = 128

#: What a section holds: the frame, the chunks' numbers in the order of a list's records, or a chunk.
_Part = Any
_encode = msgspec.msgpack.Encoder().encode


class Section(NamedTuple):
    content: bytes
    #: Since when it is so; 0 if it is empty.
    version: int


class _List(NamedTuple):
    """A list of the snapshot that is dealt out to chunks."""

    field: str
    #: The field by whose text a record is dealt out.
    by: str
    #: The type of a chunk.
    chunk: Any


_LISTS = (
    _List("hosts", "id", tuple[Host, ...]),
    _List("vms", "id", tuple[Vm, ...]),
    _List("affinity_groups", "id", tuple[AffinityGroup, ...]),
    _List("affinity_labels", "id", tuple[AffinityLabel, ...]),
    _List("placement_keys", "resource", tuple[PlacementKey, ...]),
    _List("frozen_keys", "vm", tuple[FrozenKeys, ...]),
    _List("sticky_copies", "vm", tuple[StickyCopy, ...]),
)
_NO_RECORDS: dict[str, Any] = {each.field: () for each in _LISTS}
#: First the frame, which is the snapshot without these lists; then for each list its order and its chunks.
_PARTS_OF_A_LIST = 1 + _CHUNKS
COUNT = 1 + _PARTS_OF_A_LIST * len(_LISTS)
_VERSIONS = struct.Struct(f">{COUNT}Q")
_PARTS_OF = tuple(slice(first, first + _PARTS_OF_A_LIST) for first in range(1, COUNT, _PARTS_OF_A_LIST))

#: What a snapshot without records is made of, besides its frame.
_EMPTY = Snapshot(clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=())
_NO_PARTS: tuple[_Part, ...] = (b"", *((),) * _CHUNKS) * len(_LISTS)


class Encoder:
    """Turns one snapshot after the other into sections."""

    def __init__(self) -> None:
        self._snapshot = _EMPTY
        self._parts: Sequence[_Part] = (None, *_NO_PARTS)
        self._sections = (Section(b"", 0),) * COUNT

    def encode(self, snapshot: Snapshot, version: int) -> tuple[Section, ...]:
        """Return all sections; those that differ from the last snapshot's have this version."""
        parts = [replace(snapshot, **_NO_RECORDS)]
        for each, where in zip(_LISTS, _PARTS_OF, strict=True):
            records, before = getattr(snapshot, each.field), getattr(self._snapshot, each.field)
            parts += _dealt(records, attrgetter(each.by), before, self._parts[where])
        self._sections = tuple(
            section if part == before else _section(part, version, section)
            for part, before, section in zip(parts, self._parts, self._sections, strict=True)
        )
        self._snapshot, self._parts = snapshot, parts
        return self._sections


def _dealt(
    records: Sequence[_Part], by: Callable[[_Part], str], before: Sequence[_Part], parts: Sequence[_Part]
) -> Sequence[_Part]:
    """Return the number of each record's chunk, and the chunks; these are the parts of the records before."""
    if records is before:
        return parts
    changed = [at for at, other in enumerate(map(is_not, records, before)) if other]
    if len(records) != len(before) or any(by(records[at]) != by(before[at]) for at in changed):
        return _dealt_again(records, by)
    order, *chunks = parts
    for number in {order[at] for at in changed}:
        chunks[number] = tuple(records[at] for at in _places(order, number))
    return order, *chunks


def _dealt_again(records: Sequence[_Part], by: Callable[[_Part], str]) -> Sequence[_Part]:
    order = bytes(map(_chunk_number, map(by, records)))
    chunks: tuple[list[_Part], ...] = tuple([] for _ in range(_CHUNKS))
    for number, record in zip(order, records, strict=True):
        chunks[number].append(record)
    return order, *map(tuple, chunks)


@lru_cache(maxsize=1 << 17)
def _chunk_number(text: str) -> int:
    """Every process deals alike: Python's own hash would not."""
    return zlib.crc32(text.encode()) % _CHUNKS


def _places(order: bytes, number: int) -> Iterator[int]:
    """Say where the records of a chunk stand in their list."""
    at = order.find(number)
    while at >= 0:
        yield at
        at = order.find(number, at + 1)


def _section(part: _Part, version: int, before: Section) -> Section:
    content = part if isinstance(part, bytes) else _encode(part) if part else b""
    if content == before.content:
        return before
    return Section(content, version if content else 0)


def versions_packed(encoded: Sequence[Section]) -> bytes:
    """The versions of all sections, for readers."""
    return _VERSIONS.pack(*(each.version for each in encoded))


def versions_unpacked(packed: bytes) -> tuple[int, ...]:
    """The versions as they were packed. Raises `ValueError` if these are none."""
    try:
        return _VERSIONS.unpack(packed)
    except struct.error as error:
        raise ValueError(str(error)) from None


@dataclass(frozen=True)
class Decoded:
    """A snapshot with what it is made of, for the next to share."""

    snapshot: Snapshot
    versions: tuple[int, ...]
    parts: tuple[_Part, ...]


def decode(
    versions: tuple[int, ...], content: Callable[[int], bytes], known: Decoded | None = None
) -> Decoded:
    """Put a snapshot together, asking only for the content of sections that are not known in their version.

    A record of a list that is as it was is the same object as in the known snapshot, and so is a
    list of which all records are. Raises `ValueError` if these are no sections.
    """
    known = known or _NOTHING
    parts = list(known.parts)
    try:
        for at in [at for at in range(COUNT) if versions[at] != known.versions[at]]:
            parts[at] = _decoded(at, content(at), parts[at])
        lists = {
            each.field: _collected(getattr(known.snapshot, each.field), known.parts[where], parts[where])
            for each, where in zip(_LISTS, _PARTS_OF, strict=True)
        }
    except (msgspec.MsgspecError, IndexError) as error:
        raise ValueError(str(error)) from error
    return Decoded(replace(parts[0], **lists), versions, tuple(parts))


_NOTHING = Decoded(_EMPTY, (0,) * COUNT, (_EMPTY, *_NO_PARTS))
_FRAME = msgspec.msgpack.Decoder(Snapshot)
_CHUNKS_OF = tuple(msgspec.msgpack.Decoder(each.chunk) for each in _LISTS)


def _decoded(at: int, content: bytes, before: _Part) -> _Part:
    if at == 0:
        return _FRAME.decode(content)
    which, number = divmod(at - 1, _PARTS_OF_A_LIST)
    if number == 0:
        return content
    by = attrgetter(_LISTS[which].by)
    known = {by(record): record for record in before}
    found = _CHUNKS_OF[which].decode(content) if content else ()
    kept = tuple(same if (same := known.get(by(record))) == record else record for record in found)
    return before if kept == before else kept


def _collected(known: tuple[_Part, ...], before: Sequence[_Part], now: Sequence[_Part]) -> tuple[_Part, ...]:
    """Bring the records of all chunks into their order; those of chunks that are as before stay in place."""
    order, *chunks = now
    if order != before[0]:
        return _collected_again(order, chunks)
    changed = [number for number, chunk in enumerate(chunks) if chunk is not before[1 + number]]
    if not changed:
        return known
    records = list(known)
    for number in changed:
        for at, record in zip(_places(order, number), chunks[number], strict=True):
            records[at] = record
    return tuple(records)


def _collected_again(order: bytes, chunks: Sequence[Sequence[_Part]]) -> tuple[_Part, ...]:
    waiting = [iter(chunk) for chunk in chunks]
    records = tuple(map(next, map(waiting.__getitem__, order)))
    if not len(records) == len(order) == sum(map(len, chunks)):
        raise ValueError("not as many records as places")
    return records
