"""Ids, tables and numbers as Java has them: against a JVM's answers, and against the sources of OpenJDK."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import hypothesis.strategies as st
import pytest
from hypothesis import given

from ovirt_simulator.scheduler.weights import HashMap, Record, best_host, guid_order
from tests.java_order import IDS, IN_JAVA
from tests.paths import DATA

#: What a JVM answered, of tables with few bins and with many.
TABLES = json.loads((DATA / "java" / "selector_tables.json").read_text())
#: Ids of which many share a bin.
CLOSE = st.integers(0, 400).map(lambda number: str(UUID(int=number * 8)))
ANY = st.uuids().map(str) | CLOSE


class Table:
    """java.util.HashMap by its source, with chained nodes [hash, key, next]."""

    def __init__(self) -> None:
        self.bins: list[Any] = [None] * 16
        self.size = 0

    @staticmethod
    def hash(key: str) -> int:
        high, low = divmod(UUID(key).int, 2**64)
        both = high ^ low
        code = (both // 2**32) ^ (both % 2**32)
        return code ^ (code // 2**16)

    def keys(self) -> list[str]:
        found = []
        for node in self.bins:
            while node is not None:
                found.append(node[1])
                node = node[2]
        return found

    def resize(self) -> None:
        nodes = self.keys()
        self.bins = [None] * (2 * len(self.bins))
        for key in nodes:
            self.append(key)

    def append(self, key: str) -> int:
        """Chain a node at the end, and report how many there were before."""
        at, before = self.hash(key) % len(self.bins), 0
        if self.bins[at] is None:
            self.bins[at] = [self.hash(key), key, None]
            return 0
        node = self.bins[at]
        while node[2] is not None:
            node, before = node[2], before + 1
        node[2] = [self.hash(key), key, None]
        return before + 1

    def put(self, key: str) -> None:
        if key in self.keys():
            return
        if self.append(key) >= 8 and len(self.bins) < 64:
            self.resize()
        self.size += 1
        if self.size > len(self.bins) * 0.75:
            self.resize()

    def merge(self, key: str) -> None:
        if self.size > len(self.bins) * 0.75:
            self.resize()
        if key in self.keys():
            return
        at, before = self.hash(key) % len(self.bins), 0
        node = self.bins[at]
        while node is not None:
            node, before = node[2], before + 1
        self.bins[at] = [self.hash(key), key, self.bins[at]]
        if before >= 7 and len(self.bins) < 64:
            self.resize()
        self.size += 1


@given(st.lists(st.tuples(st.booleans(), ANY), max_size=60))
def test_a_table_gives_its_keys_as_the_source_does(calls: list[tuple[bool, str]]) -> None:
    ours, theirs = HashMap[int](), Table()
    for merges, key in calls:
        (ours.merge if merges else ours.put)(key, 0)
        (theirs.merge if merges else theirs.put)(key)
    assert list(ours) == theirs.keys()
    assert len(ours) == theirs.size


def test_a_table_gives_its_keys_as_a_jvm_did() -> None:
    table = HashMap[None]()
    for key in IDS:
        table.put(key, None)
    assert list(table) == [IDS[at] for at in IN_JAVA]


@pytest.mark.parametrize("asked", TABLES)
def test_of_equals_the_first_is_chosen_that_a_jvm_found(asked: dict[str, Any]) -> None:
    units = asked["units"]
    records = [Record(unit, host, weight) for unit in units for host, weight in units[unit].items()]
    assert best_host(asked["hosts"], records, dict.fromkeys(units, 0)) == asked["found"][0]


@given(st.lists(st.uuids(), min_size=2, max_size=6))
def test_ids_compare_by_signed_halves(ids: list[UUID]) -> None:
    def halves(one: UUID) -> tuple[int, int]:
        upper, lower = one.bytes[:8], one.bytes[8:]
        return int.from_bytes(upper, signed=True), int.from_bytes(lower, signed=True)

    assert sorted(map(str, ids), key=guid_order) == [str(one) for one in sorted(ids, key=halves)]
