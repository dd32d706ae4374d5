"""What may be set where, and the code of each mistake."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.placement_keys import SETTABLE
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.placement_keys.hierarchy import UnreadableProperty, find_mistakes
from ovirt_placement.rules.placement_keys.keys import key_kind, missing_node_keys, number, validate
from ovirt_placement.rules.placement_keys.units import compiled_keys, filter_hosts, rank_hosts
from tests.builders import host, vm
from tests.placement.rules.placement_keys.nodes import key, keyed, node_key

#: The levels where a customer may set keys, as table 1.1 has them: all that is theirs, and no offer.
CUSTOMERS_OWN = ["image", "server", "disk", "network", "nic"]


@pytest.mark.parametrize("level", [level for level in SETTABLE if level != "node"])
@pytest.mark.parametrize("setter", ["system", "be", "customer"])
def test_customers_key_only_what_is_theirs(level: str, setter: str) -> None:
    refused = setter == "customer" and level not in CUSTOMERS_OWN
    expected = ("customer-key-not-allowed-here",) if refused else ()
    assert validate(key("K", level=level, key_class=setter)) == expected


@pytest.mark.parametrize(
    ("wrong", "codes"),
    [
        (key(""), {"name-empty"}),
        (key("_", key_class="be"), {"name-empty"}),
        (key("#"), {"name-empty"}),
        (node_key("h1", " "), {"name-empty"}),
        (key("K", "gold"), {"value-not-numeric"}),
        (key("K", float("nan")), {"value-not-numeric"}),
        (key("K", float("inf")), {"value-not-numeric"}),
        (key("K", "-inf"), {"value-not-numeric"}),
        (key("K", "1_0"), {"value-not-numeric"}),
        (key("K", weight=0), {"weight-zero"}),
        (key("K", weight=None), {"weight-zero"}),
        (key("K", "gold", 0), {"value-not-numeric", "weight-zero"}),
        (key("_K", level="cluster"), {"reserved-as-system"}),
        (key("#DISK"), {"special-unknown"}),
        (key("#ram"), {"special-unknown"}),
        (key("#RAM", key_class="be"), {"special-not-system"}),
        (
            key("#RAM", key_class="customer", level="vdc"),
            {"special-not-system", "customer-key-not-allowed-here"},
        ),
        (node_key("h1", "#RAM"), {"special-on-node"}),
        (node_key("h1", "#ram_ratio"), {"special-on-node"}),
        (node_key("h1", "#RAM_RATIO", 0), {"ratio-out-of-range"}),
        (node_key("h1", "#CPU_RATIO", -0.5), {"ratio-out-of-range"}),
        (node_key("h1", "#CPU_RATIO", 1000), {"ratio-out-of-range"}),
        (node_key("h1", "#CPU_RATIO", "much"), {"value-not-numeric"}),
        (node_key("h1", "#RAM_RATIO", key_class="be"), {"customer-key-not-allowed-here"}),
        (node_key("h1", "#RAM_RATIO", 1.5, sticky=True, weight=60.0), {"sticky-and-reserved"}),
        (key("#RAM_RATIO", 2), {"special-unknown"}),
        (key("#LOAD", 0.5, level="cluster"), {"special-cluster-value-not-0"}),
        (key("K", sticky=True), {"sticky-not-on-node"}),
        (node_key("h1", "SAN", sticky=True), {"sticky-without-weight"}),
        (node_key("h1", "_SAN", sticky=True, weight=60.0), {"sticky-and-reserved"}),
        (node_key("h1", "K", key_class="customer"), {"customer-key-not-allowed-here"}),
    ],
)
def test_each_mistake_has_its_code(wrong: PlacementKey, codes: set[str]) -> None:
    assert set(validate(wrong)) == codes


@pytest.mark.parametrize(
    "right",
    [
        key("K", "1.5"),
        key("K", "-1e-2"),
        key("#RAM", 0, level="cluster"),
        key("#RAM", 2),
        key("_K", key_class="be"),
        key("_K", key_class="customer"),
        node_key("h1", "K"),
        node_key("h1", "_K"),
        node_key("h1", "#RAM_RATIO", 1.5),
        node_key("h1", "#CPU_RATIO", "999.99"),
        node_key("h1", "SAN", sticky=True, weight=60.0),
    ],
)
def test_what_may_be_set_has_no_code(right: PlacementKey) -> None:
    assert validate(right) == ()


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (key("K"), "placement"),
        (key("K", "gold"), "normal"),
        (key("#RAM", 0, weight=0), "normal"),
        (key("#RAM", 0), "special"),
        (key("_K", key_class="be"), "reserved"),
        (node_key("h1", "K"), "placement"),
        (node_key("h1", "_K"), "reserved"),
        (node_key("h1", "K", sticky=True, weight=60.0), "sticky"),
        (node_key("h1", "#RAM_RATIO", 1.5), "ratio"),
        (node_key("h1", "#RAM_RATIO", 1.5, sticky=True, weight=60.0), "ratio"),
        (node_key("h1", "K", sticky=True), "placement"),
    ],
)
def test_kind_follows_name_flag_and_weight(one: PlacementKey, expected: str) -> None:
    assert key_kind(one) == expected


def test_hosts_that_lack_a_name_of_their_cluster_are_named() -> None:
    carried = {"h1": ["A", "B"], "h2": ["B", "A"], "h3": ["B", "C"]}
    assert missing_node_keys(carried) == {"h1": ("C",), "h2": ("C",), "h3": ("A",)}
    assert missing_node_keys({"h1": ["A"], "h2": ["A"]}) == {}
    assert missing_node_keys({}) == {}


@pytest.mark.parametrize("large", ["9" * 41, "1e9999", "1" * 5000, "1e400", "-1e308", 1e308])
def test_no_number_is_too_large_to_reckon_with(large: float | str) -> None:
    assert number(large) is None


def test_the_largest_number_leaves_room_for_sums() -> None:
    largest = number("9" * 40 + "e99")
    assert largest is not None
    assert math.isfinite(float(largest * 10**9))


ENTRIES = st.from_regex(r"\A[A-Z_#]{1,3}:-?[0-9]{1,50}(\.[0-9]{1,3})?:-?[0-9]{1,3}\Z")
TEXTS = st.text(alphabet="A_#:,.;=-019 \n", max_size=20) | st.lists(ENTRIES, max_size=3).map(",".join)


def state(text: str) -> Snapshot:
    """Two hosts that show something, and a VM with this property."""
    return keyed(
        host("h1"),
        host("h2"),
        vm("v1", custom_properties={"placement_keys": text}),
        keys=(node_key("h1", "_A", 1.0), node_key("h2", "_A", 0.0)),
    )


@given(TEXTS)
def test_no_text_stops_a_start(text: str) -> None:
    request = Request(("v1",), ("h1", "h2"))
    assert all(verdict.accepted for verdict in filter_hosts(state(text), request))
    assert {weight.host for weight in rank_hosts(state(text), request)} == {"h1", "h2"}


@given(TEXTS)
def test_text_of_another_form_is_reported_and_sets_nothing(text: str) -> None:
    world = state(text)
    reported = [one for one in find_mistakes(world) if isinstance(one, UnreadableProperty)]
    if reported:
        compiled = compiled_keys(world, "v1")
        assert reported == [UnreadableProperty("v1", text)]
        assert (dict(compiled.system), dict(compiled.customer), compiled.ignored) == ({}, {}, ())
    else:
        assert all(len(entry.split(":")) == 3 for entry in text.split(",") if text)
