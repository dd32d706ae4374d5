"""The order that units' weights make, and the engine's order of candidates where the vectors do not go.

That of hard groups is compared with the simulator's: tests/tools/test_engine_cases.py.
"""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.rules.catalogue import constraints
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.ranks import Scored, in_order, order_hosts, spread_hash
from ovirt_placement.rules.engine_affinity import gains, tiers
from tests.builders import CLUSTER, SOFT_APART, SOFT_TOGETHER, group, host, snapshot, vm
from tests.java_order import IDS, IN_JAVA
from tests.paths import DATA

#: What a JVM answered, of tables with few bins and with many.
TABLES = DATA / "java" / "selector_tables.json"

HOSTS = ("h1", "h2", "h3", "h4")
WEIGHTS = st.dictionaries(
    st.sampled_from(["u1", "u2", None]),
    st.dictionaries(st.sampled_from(HOSTS), st.integers(0, 3)),
    max_size=3,
)


def test_only_the_order_within_a_unit_counts() -> None:
    near = order_hosts(("h1", "h2"), {"u": {"h1": 1, "h2": 2}}, {"u": 3})
    far = order_hosts(("h1", "h2"), {"u": {"h1": 1, "h2": 10**9}}, {"u": 3})
    assert near == far == (Scored("h1", 3), Scored("h2", 0))


def test_missing_weight_is_the_best_and_of_equals_what_is_named_first() -> None:
    assert [one.host for one in order_hosts(("h2", "h3", "h1"), {"u": {"h2": 5}}, {})] == ["h3", "h1", "h2"]


def test_ties_go_as_in_the_engines_table_of_hosts() -> None:
    alike = dict.fromkeys(IDS, 1)
    assert [IDS.index(one.host) for one in order_hosts(IDS, {"u": alike, "v": alike}, {})] == list(IN_JAVA)


@given(WEIGHTS, st.dictionaries(st.sampled_from(["u1", "u2"]), st.integers(0, 20)))
def test_points_are_those_of_the_definition(
    weights: dict[str | None, dict[str, int]], factors: dict[str, int]
) -> None:
    for scored in order_hosts(HOSTS, weights, factors):
        points = 0
        for unit, by_host in weights.items():
            own = by_host.get(scored.host, 0)
            not_preferred = sum(by_host.get(host, 0) >= own for host in HOSTS) - 1
            if by_host:
                points += not_preferred * (1 if unit is None else factors.get(unit, 1))
        assert scored.points == points


@pytest.mark.parametrize("asked", json.loads(TABLES.read_text()))
def test_hosts_in_one_bin_come_as_a_jvm_found_them(asked: dict[str, Any]) -> None:
    """The order in which a JVM went through the selector's table of points, all of them alike."""
    order = order_hosts(asked["hosts"], asked["units"], dict.fromkeys(asked["units"], 0))
    assert [one.host for one in order] == asked["found"]


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


def test_gains_and_losses_that_cancel_leave_it_to_the_next_priority() -> None:
    state = snapshot(
        *map(host, HOSTS),
        vm("a", "h1"),
        vm("b", "h1", migratable=False),
        vm("c", "h2", migratable=False),
        vm("d", "h1", migratable=False),
        group("from b", SOFT_APART, "a b", priority=5.0),
        group("from c", SOFT_APART, "a c", priority=5.0),
        group("from d", SOFT_APART, "a d", priority=1.0),
    )
    assert gains(state, "a", "h2")
    assert not gains(state, "a", "h1")


def test_members_of_a_group_with_higher_priority_come_first_though_it_is_smaller() -> None:
    state = snapshot(
        *map(host, HOSTS),
        *(vm(name, "h1") for name in "abcde"),
        group("large", SOFT_APART, "a b c"),
        group("small", SOFT_APART, "d e", priority=2.0),
    )
    found = tiers([*constraints(state, CLUSTER)], SnapshotPlacement(state), "abcde")
    assert list(found) == [(False, ("d", "e")), (False, ("a", "b", "c"))]


@pytest.mark.parametrize("there", range(3))
@pytest.mark.parametrize("here", range(3))
def test_a_loss_weighs_against_a_gain_of_the_same_priority(there: int, here: int) -> None:
    """Of groups with one other member each: it stands where the VM would go, or where it is."""
    friends = [("h2", f"there{at}") for at in range(there)] + [("h1", f"here{at}") for at in range(here)]
    state = snapshot(
        *map(host, HOSTS),
        vm("a", "h1"),
        *(vm(name, place) for place, name in friends),
        *(group(f"with {name}", SOFT_TOGETHER, f"a {name}") for _, name in friends),
    )
    assert gains(state, "a", "h2") == (there > here)
