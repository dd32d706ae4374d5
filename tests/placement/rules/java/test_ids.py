"""The order of ids and of hash tables, against Java's own definitions."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.rules.java import in_order, put_all, spread_hash
from tests.java_order import IDS, IN_JAVA

#: Ids of all kinds, and some whose hashes meet.
NAMES = st.lists(
    (st.uuids() | st.integers(0, 80).map(lambda number: UUID(int=number))).map(str), unique=True, max_size=40
)


def halves(name: str) -> tuple[int, int]:
    """As `UUID.compareTo` takes them: two signed numbers of 64 bits."""
    octets = bytes.fromhex(name.replace("-", ""))
    return int.from_bytes(octets[:8], signed=True), int.from_bytes(octets[8:], signed=True)


def spread(name: str) -> int:
    """All four words of the id, one over the other; the upper half of the sum over the lower."""
    word = 0
    digits = name.replace("-", "")
    for start in range(0, 32, 8):
        word ^= int(digits[start : start + 8], 16)
    return word ^ word >> 16


@given(NAMES)
def test_ids_are_compared_by_signed_halves(names: list[str]) -> None:
    assert sorted(names, key=in_order) == sorted(names, key=halves)
    assert [spread_hash(name) for name in names] == [spread(name) for name in names]


def test_what_is_no_id_comes_last_as_people_count() -> None:
    names = ["vm10", "vm2", "ffffffff-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000001"]
    assert sorted(names, key=in_order) == [*names[2:], "vm2", "vm10"]
    assert spread_hash("vm2") is None


@given(NAMES)
def test_a_table_is_gone_through_bin_by_bin(names: list[str]) -> None:
    """It has 16 bins, and twice as many whenever it is fuller than three quarters; no bin here is crowded."""
    size = 16
    while len(names) > size * 3 / 4:
        size *= 2
    bins = [[name for name in names if spread(name) % size == number] for number in range(size)]
    if max(map(len, bins), default=0) < 8:
        assert put_all(names) == [name for one in bins for name in one]


def test_a_jvm_found_the_same() -> None:
    assert [IDS.index(name) for name in put_all(IDS)] == list(IN_JAVA)
