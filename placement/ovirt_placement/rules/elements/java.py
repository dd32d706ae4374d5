"""Java where the engine's answer hangs on it: the order of ids in its maps, and its arithmetic."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from uuid import UUID

_HALF = 64
_SIGN = 1 << (_HALF - 1)
_WORD = 0xFFFFFFFF


#: Where an id stands among others.
Place = tuple[int, int, int, tuple[tuple[int, str], ...]]
_FIRST_SIZE = 16
_SMALL = 64


@lru_cache(maxsize=65536)
def in_order(name: str) -> Place:
    """Sort ids by this as `Guid.compareTo` does: by their halves, each taken as a signed number.

    What is no id of an engine comes after all that are, as people count: vm2 before vm10.
    """
    try:
        upper, lower = _halves(name)
    except ValueError:
        parts = re.findall(r"\d+|\D+", name)
        return 1, 0, 0, tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)
    return 0, _signed(upper), _signed(lower), ()


@lru_cache(maxsize=65536)
def spread_hash(name: str) -> int | None:
    """The hash of an id as a `HashMap` spreads it; None for what is no id of an engine.

    Source: java.util.UUID.hashCode and java.util.HashMap.hash.
    """
    try:
        upper, lower = _halves(name)
    except ValueError:
        return None
    folded = upper ^ lower
    code = (folded >> 32) ^ (folded & _WORD)
    return code ^ (code >> 16)


def _halves(name: str) -> tuple[int, int]:
    return divmod(UUID(name).int, 1 << _HALF)


def _signed(half: int) -> int:
    return half - (1 << _HALF) if half & _SIGN else half


#: With this many keys in a bin a table that is still small grows, where a larger one makes a tree of the bin.
_CROWDED_BY_PUT, _CROWDED_BY_MERGE = 9, 8


class KeyOrder:
    """The keys of one `HashMap`, in their bins; what is no id of an engine counts as hash 0."""

    def __init__(self) -> None:
        self._bins: list[list[str]] = []
        self._known: set[str] = set()

    def put(self, key: str) -> None:
        """Follow a call of `put` or `putIfAbsent`."""
        if not self._bins:
            self._grow()
        if key in self._known:
            return
        bin_of_it = self._bin(key)
        bin_of_it.append(key)
        self._known.add(key)
        if len(bin_of_it) >= _CROWDED_BY_PUT and len(self._bins) < _SMALL:
            self._grow()
        if self._too_full:
            self._grow()

    def merge(self, key: str) -> None:
        """Follow a call of `merge` with a value."""
        if not self._bins or self._too_full:
            self._grow()
        if key in self._known:
            return
        bin_of_it = self._bin(key)
        bin_of_it.insert(0, key)
        self._known.add(key)
        if len(bin_of_it) >= _CROWDED_BY_MERGE and len(self._bins) < _SMALL:
            self._grow()

    def listed(self) -> list[str]:
        """The keys as an iterator comes upon them."""
        return list(chain.from_iterable(self._bins))

    @property
    def _too_full(self) -> bool:
        return len(self._known) > len(self._bins) * 3 // 4

    def _bin(self, key: str) -> list[str]:
        return self._bins[(spread_hash(key) or 0) % len(self._bins)]

    def _grow(self) -> None:
        keys = self.listed()
        self._bins = [[] for _ in range(2 * len(self._bins) or _FIRST_SIZE)]
        for key in keys:
            self._bin(key).append(key)


def put_all(keys: Iterable[str]) -> list[str]:
    """The order of keys that were put one after the other."""
    order = KeyOrder()
    for key in keys:
        order.put(key)
    return order.listed()


_SINGLE = struct.Struct("f")
_LEAST_INT, _MOST_INT = -(2**31), 2**31 - 1


def single(number: float) -> float:
    """The nearest `float` of Java."""
    try:
        (rounded,) = _SINGLE.unpack(_SINGLE.pack(number))
    except OverflowError:
        return math.copysign(math.inf, number)
    return float(rounded)


def rounded(number: float) -> int:
    """`Math.round` of a `float`: halves go up, what is no number is 0, and an `int` ends where it ends."""
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return _MOST_INT if number > 0 else _LEAST_INT
    below = math.floor(number)
    return min(max(below + (number - below >= 0.5), _LEAST_INT), _MOST_INT)


def wrapped(number: int) -> int:
    """What is left of a sum or product in an `int`."""
    return (number - _LEAST_INT) % 2**32 + _LEAST_INT


def quotient(dividend: float, divisor: float) -> float:
    """A division of numbers with a point, which nothing forbids in Java."""
    if divisor == 0:
        return math.copysign(math.inf, dividend) if dividend else math.nan
    return dividend / divisor
