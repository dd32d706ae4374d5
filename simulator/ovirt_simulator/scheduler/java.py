"""What of the engine's answers follows from Java: how its ids compare, its tables, and its numbers.

Source: java.util.UUID (compareTo, hashCode), which the engine's Guid hands both to, and java.util.HashMap of
OpenJDK.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import TypeVar
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


def float32(number: float) -> float:
    """Round to the 32 bits of Java's float."""
    (rounded,) = struct.unpack("f", struct.pack("f", number))
    return float(rounded)


def divided(dividend: float, divisor: float) -> float:
    """Divide as Java's floating-point numbers do, by zero too."""
    if divisor:
        return dividend / divisor
    return math.copysign(math.inf, dividend) if dividend else math.nan


def math_round(number: float) -> int:
    """Round to the nearest int, halves up; what is no number gives 0, and the ends of an int hold."""
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return 2**31 - 1 if number > 0 else -(2**31)
    whole = math.floor(number)
    return whole if number - whole < 0.5 else whole + 1


def as_int(number: int) -> int:
    """Give what is left of a sum in the 32 bits of an int."""
    return (number + 2**31) % 2**32 - 2**31


Value = TypeVar("Value")

_BINS = 16
#: A bin with this many keys is too long: a table with fewer bins than the second number grows.
_LONG_BIN, _FEW_BINS = 8, 64


class HashMap(dict["str | None", Value]):
    """Values by id. What is no UUID has the hash 0; so has None, the key that the engine calls null."""

    def __init__(self) -> None:
        super().__init__()
        self._bins: list[list[str | None]] = [[] for _ in range(_BINS)]

    def __iter__(self) -> Iterator[str | None]:
        for keys in self._bins:
            yield from keys

    def put(self, key: str | None, value: Value) -> None:
        """Set a value: a new key goes to the end of its bin, and a table that is too full grows now."""
        if key not in self:
            keys = self._bin(key)
            keys.append(key)
            self[key] = value
            if len(keys) > _LONG_BIN:
                self._shorten()
            if self._too_full():
                self._grow()
        self[key] = value

    def merge(self, key: str | None, value: Value) -> None:
        """Set a value: a new key goes in front of its bin, and a table that is too full grows before."""
        if self._too_full():
            self._grow()
        if key not in self:
            keys = self._bin(key)
            keys.insert(0, key)
            self[key] = value
            if len(keys) >= _LONG_BIN:
                self._shorten()
        self[key] = value

    def _bin(self, key: str | None) -> list[str | None]:
        return self._bins[(0 if key is None else guid_hash(key) or 0) % len(self._bins)]

    def _too_full(self) -> bool:
        return len(self) > len(self._bins) // 4 * 3

    def _shorten(self) -> None:
        if len(self._bins) < _FEW_BINS:
            self._grow()

    def _grow(self) -> None:
        keys = list(self)
        self._bins = [[] for _ in range(2 * len(self._bins))]
        for key in keys:
            self._bin(key).append(key)
