"""Ranks as a trace holds them: a byte each, mostly."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

_BYTES, _LARGER = b"B", b"I"
_SIZES = {_BYTES: 1, _LARGER: array(_LARGER.decode()).itemsize}


def packed(ranks: Iterable[int]) -> bytes:
    """Pack ranks; the first byte says how."""
    numbers = list(ranks)
    try:
        return _BYTES + bytes(numbers)
    except ValueError:
        return _LARGER + array(_LARGER.decode(), numbers).tobytes()


def unpacked(ranks: bytes) -> Sequence[int]:
    """The ranks as they were packed."""
    code, numbers = ranks[:1], ranks[1:]
    return numbers if code == _BYTES else array(code.decode(), numbers)


def are_packed(ranks: bytes, count: int) -> bool:
    """Whether these are this many packed ranks: anybody in the group can write others."""
    size = _SIZES.get(ranks[:1])
    return size is not None and len(ranks) == 1 + count * size
