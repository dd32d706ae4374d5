"""The order in which a Java `HashMap` with ids for keys is gone through.

Keys stand in bins by their hash. `put` appends a new key to its bin and makes the table grow when it has
become too full; `merge` puts it in front of its bin, and the table grows at the next call. Bins of eight keys
and more become trees once the table has 64, which may put another one of them first: that is left out.

Source: java.util.HashMap of OpenJDK 11 and later.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from ovirt_placement.rules.java.ids import spread_hash

_FIRST_SIZE = 16
#: With this many keys in a bin a table that is still small grows, where a larger one makes a tree of the bin.
_CROWDED_BY_PUT, _CROWDED_BY_MERGE = 9, 8
_SMALL = 64


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
