"""The lists of a host: which keys come in, which are computed, and what is passed on."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from ovirt_placement.rules.placement_keys.host_keys import Values
from ovirt_placement.rules.placement_keys.settings import KeySettings
from tests.placement.rules.placement_keys.nodes import keys_there, node
from tests.placement.rules.placement_keys.parts import node_key

#: As the letter of the original says.
LITERAL = KeySettings(reserved_from_vms=True)


def plain(values: Values) -> dict[str, list[tuple[float, int]]]:
    return {
        name: sorted((number / whole, count) for (number, whole), count in found)
        for name, found in values.items()
    }


def test_vms_bring_customer_keys_with_their_duplicates_and_reserved_keys_are_the_hosts_own() -> None:
    own = [node_key("h1", "GEN", 0.5), node_key("h1", "_GREEN", 1.0)]
    frozen = [(("A", 1.0), ("_GREEN", 0.0)), (("A", 1.0), ("B", 2.0)), (("A", 3.0),)]
    there = node("h1", own, frozen)
    keys = keys_there(there)
    assert plain(keys.system) == {"GEN": [(0.5, 1)], "#RAM": [(0, 1)], "#CPU": [(0, 1)], "#LOAD": [(0, 1)]}
    assert plain(keys.customer) == {"A": [(1, 2), (3, 1)], "B": [(2, 1)], "_GREEN": [(1, 1)]}
    literal = keys_there(there, LITERAL)
    assert plain(literal.customer)["_GREEN"] == [(0, 1), (1, 1)]


def test_keys_with_mistakes_are_left_out_but_a_wrong_sticky_flag_is_only_ignored() -> None:
    own = [
        node_key("h1", "WORD", "fast"),
        node_key("h1", "#RAM", 1.0),
        node_key("h1", "THEIRS", key_class="customer"),
        node_key("h1", "PRIV", 1.0, sticky=True),
        node_key("h1", "_SAN", 1.0, sticky=True, weight=60.0),
        node_key("h1", "SAN", 2.0, sticky=True, weight=60.0),
    ]
    keys = keys_there(node("h1", own))
    assert plain(keys.system) == {
        "PRIV": [(1, 1)],
        "SAN": [(2, 1)],
        "#RAM": [(0, 1)],
        "#CPU": [(0, 1)],
        "#LOAD": [(0, 1)],
    }
    assert plain(keys.customer) == {"_SAN": [(1, 1)]}
    assert [key.name for key in keys.sticky] == ["SAN"]


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"allocated_mb": 16384}, "#RAM", Fraction(1, 4)),
        ({"allocated_mb": 16384, "memory_ratio": Fraction(3, 2)}, "#RAM", Fraction(1, 6)),
        ({"allocated_mb": 99999}, "#RAM", 1),
        ({"memory_mb": 0}, "#RAM", 1),
        ({"allocated_vcpus": 8}, "#CPU", Fraction(1, 2)),
        ({"allocated_vcpus": 8, "cpu_ratio": Fraction(4)}, "#CPU", Fraction(1, 8)),
        ({"allocated_vcpus": 17}, "#CPU", 1),
        ({"load": Fraction(3, 10)}, "#LOAD", Fraction(3, 10)),
        ({"load": Fraction(11, 10)}, "#LOAD", 1),
        ({"load": Fraction(-1)}, "#LOAD", 0),
    ],
)
def test_special_keys_are_shares_between_0_and_1(fields: dict[str, Any], name: str, value: Fraction) -> None:
    assert keys_there(node("h1", **fields)).system[name] == ((value.as_integer_ratio(), 1),)


def test_host_without_statistics_has_no_load() -> None:
    assert "#LOAD" not in keys_there(node("h1", load=None)).system


@pytest.mark.parametrize("settings", [KeySettings(), LITERAL])
def test_special_names_that_customers_made_up_draw_nobody(settings: KeySettings) -> None:
    keys = keys_there(node("h1", brought=[(("#RAM", 0.0), ("A", 1.0))]), settings)
    assert set(keys.customer) == {"A"}
