"""The order that several units' weights make, against the selector's definition."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.rules.ranks import Scored, order_hosts
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
