"""A Java HashMap whose keys are ids, for the order in which it gives them back.

Source: java.util.HashMap of OpenJDK. Left out: that a bin of eight and more keys becomes a tree in a table of
64 bins and more, which may bring another of its keys to the front.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from .ids import guid_hash

Value = TypeVar("Value")

_BINS = 16
#: A bin with this many keys is too long: a table with fewer bins than the second number grows.
_LONG_BIN, _FEW_BINS = 8, 64


class HashMap(Generic[Value]):
    """Values by id. What is no UUID has the hash 0; so has None, the key that the engine calls null."""

    def __init__(self) -> None:
        self._bins: list[list[str | None]] = [[] for _ in range(_BINS)]
        self._values: dict[str | None, Value] = {}

    def __iter__(self) -> Iterator[str | None]:
        for keys in self._bins:
            yield from keys

    def __getitem__(self, key: str | None) -> Value:
        return self._values[key]

    def __contains__(self, key: str | None) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str | None, default: Value) -> Value:
        return self._values.get(key, default)

    def put(self, key: str | None, value: Value) -> None:
        """Set a value: a new key goes to the end of its bin, and a table that is too full grows now."""
        if key not in self._values:
            keys = self._bin(key)
            keys.append(key)
            self._values[key] = value
            if len(keys) > _LONG_BIN:
                self._shorten()
            if self._too_full():
                self._grow()
        self._values[key] = value

    def merge(self, key: str | None, value: Value) -> None:
        """Set a value: a new key goes in front of its bin, and a table that is too full grows before."""
        if self._too_full():
            self._grow()
        if key not in self._values:
            keys = self._bin(key)
            keys.insert(0, key)
            self._values[key] = value
            if len(keys) >= _LONG_BIN:
                self._shorten()
        self._values[key] = value

    def _bin(self, key: str | None) -> list[str | None]:
        return self._bins[(0 if key is None else guid_hash(key) or 0) % len(self._bins)]

    def _too_full(self) -> bool:
        return len(self._values) > len(self._bins) // 4 * 3

    def _shorten(self) -> None:
        if len(self._bins) < _FEW_BINS:
            self._grow()

    def _grow(self) -> None:
        keys = list(self)
        self._bins = [[] for _ in range(2 * len(self._bins))]
        for key in keys:
            self._bin(key).append(key)
