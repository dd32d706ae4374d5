"""Ids as Java compares and hashes them.

Source: java.util.UUID (compareTo, hashCode), which the engine's Guid hands both to.
"""

from __future__ import annotations

from uuid import UUID

_LONG = 1 << 64


def guid_order(name: str) -> tuple[bool, int, int, str]:
    """Give what ids sort by: their upper and then their lower half, each a signed 64-bit number.

    What is no UUID, which no engine has, comes last, by its letters.
    """
    bits = _bits(name)
    if bits is None:
        return True, 0, 0, name
    return False, _signed(bits // _LONG), _signed(bits % _LONG), name


def guid_hash(name: str) -> int | None:
    """Give the 32 bits that a HashMap finds the id's bin by; None for what is no UUID."""
    bits = _bits(name)
    if bits is None:
        return None
    half = bits // _LONG ^ bits % _LONG
    code = (half >> 32 ^ half) & 0xFFFFFFFF
    return code ^ code >> 16


def _bits(name: str) -> int | None:
    try:
        return UUID(name).int
    except ValueError:
        return None


def _signed(half: int) -> int:
    return half if half < _LONG // 2 else half - _LONG
