"""Which keys a VM has, what may be set where, and the code of each mistake."""

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ovirt_placement.model import (
    DataCenter,
    Disk,
    Network,
    Nic,
    PlacementKey,
    Snapshot,
    StickyCopy,
    VnicProfile,
)
from ovirt_placement.model.record import SETTABLE
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.placement_keys.hierarchy import (
    MissingNodeKeys,
    UnreadableProperty,
    compile_keys,
    find_mistakes,
)
from ovirt_placement.rules.placement_keys.host_table import copies_after_start
from ovirt_placement.rules.placement_keys.keys import key_kind, number, validate
from ovirt_placement.rules.placement_keys.units import compiled_keys, filter_hosts, rank_hosts
from tests.builders import cluster, host, key, node_key, vm
from tests.placement.rules.placement_keys.nodes import keyed
from tests.placement.rules.placement_keys.reference import LADDER

#: What stands on each level for the VM below, the weakest first.
STANDING = (
    ("cluster", "cluster1"), ("billing_entity", "quota1"), ("customer_offer", "owner1"),
    ("customer", "owner1"), ("image_offer", "template1"), ("image", "template1"), ("vdc_offer", "dc1"),
    ("vdc", "dc1"), ("server_offer", "cpu1"), ("server_offer", "type1"), ("server", "new"),
    ("disk_offer", "diskprofile1"), ("disk", "disk1"), ("network_offer", "net1"), ("network", "net1"),
    ("nic_offer", "profile1"), ("nic", "nic-a"),
)  # fmt: skip


def whole_hierarchy(*keys: PlacementKey, **fields: Any) -> Snapshot:
    new = vm(
        "new",
        quota="quota1",
        owner="owner1",
        template="template1",
        instance_type="type1",
        cpu_profile="cpu1",
        disks=(Disk(id="data", bootable=False), Disk(id="disk1", bootable=True, profile="diskprofile1")),
        nics=(Nic(id="nic-b", name="nic10"), Nic(id="nic-a", name="nic2", vnic_profile="profile1")),
        **fields,
    )
    return keyed(
        cluster(data_center="dc1"), new, keys=keys, data_centers=(DataCenter(id="dc1", name="dc1"),),
        networks=(Network(id="net1", name="net1"),),
        vnic_profiles=(VnicProfile(id="profile1", name="profile1", network="net1"),),
    )  # fmt: skip


@pytest.mark.parametrize("weaker", range(len(STANDING)), ids=["-".join(one) for one in STANDING])
def test_each_level_has_its_object_in_the_engine_and_hides_the_weaker_ones(weaker: int) -> None:
    keys = [key("K", at, 1.0 + at, level, resource=on) for at, (level, on) in enumerate(STANDING)]
    astray = key("K", level=STANDING[weaker][0], resource="another")
    found = compiled_keys(whole_hierarchy(astray, *keys[weaker::-1]), "new").system["K"]
    assert (found.value, found.weight) == (weaker, 1 + weaker)
    assert (found.source, found.hidden) == (keys[weaker], tuple(keys[:weaker]))


def test_property_sets_the_servers_customer_keys() -> None:
    stored = key("A", 9.0, key_class="customer")
    image = key("B", 9.0, level="image", resource="template1", key_class="customer")
    state = whole_hierarchy(stored, image, custom_properties={"placement_keys": "A:1:100,_B:-0.5:7,B:2:0"})
    compiled = compiled_keys(state, "new")
    assert {name: (float(k.value), float(k.weight)) for name, k in compiled.customer.items()} == {
        "A": (1, 100),
        "B": (9, 100),
        "_B": (-0.5, 7),
    }
    assert [(one.key.name, one.codes) for one in compiled.ignored] == [("B", ("weight-zero",))]


def test_start_copies_the_sticky_keys_and_replaces_older_copies() -> None:
    older = (
        StickyCopy(vm="new", name="SAN", value=2, weight=60),
        StickyCopy(vm="new", name="OLD", value=1, weight=5),
        StickyCopy(vm="other", name="THEIRS", value=3, weight=60),
    )
    assert copies_after_start("new", older, [node_key("h1", "SAN", 1.0, sticky=True, weight=60.0)]) == (
        StickyCopy(vm="new", name="SAN", value=1, weight=60),
        StickyCopy(vm="new", name="OLD", value=1, weight=5),
    )


KEYS = st.builds(
    key,
    st.sampled_from(["K", "L"]),
    st.sampled_from([0.0, 0.5, 1.0, 2.5, "3", "gold"]),
    st.sampled_from([None, 0.0, 10.0, -7.5, 100.0]),
    st.sampled_from((*LADDER, "node", "elsewhere")),
    st.sampled_from(["system", "be", "customer"]),
)


@given(st.lists(KEYS, max_size=8))
def test_every_key_on_the_ladder_is_reported_once(keys: list[PlacementKey]) -> None:
    compiled = compile_keys(keys)
    reported = [one.key for one in compiled.ignored]
    for winner in (*compiled.system.values(), *compiled.customer.values()):
        reported += [winner.source, *winner.hidden]
    assert sorted(map(repr, reported)) == sorted(repr(one) for one in keys if one.level in LADDER)


def test_on_one_resource_the_customer_beats_the_billing_entity_in_any_order() -> None:
    keys = [key("K", 1.0, key_class="customer"), key("K", 2.0, key_class="be")]
    assert [compile_keys(order).customer["K"].value for order in (keys, keys[::-1])] == [1, 1]


#: The levels where a customer may set keys, as table 1.1 has them: all that is theirs, and no offer.
CUSTOMERS_OWN = ["image", "server", "disk", "network", "nic"]


@pytest.mark.parametrize("level", [level for level in SETTABLE if level != "node"])
@pytest.mark.parametrize("setter", ["system", "be", "customer"])
def test_customers_key_only_what_is_theirs(level: str, setter: str) -> None:
    refused = setter == "customer" and level not in CUSTOMERS_OWN
    expected = ("customer-key-not-allowed-here",) if refused else ()
    assert validate(key("K", level=level, key_class=setter)) == expected


@pytest.mark.parametrize(
    ("one", "codes"),
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
        *(
            (right, set())
            for right in (
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
            )
        ),
    ],
)
def test_each_mistake_has_its_code_and_what_may_be_set_has_none(one: PlacementKey, codes: set[str]) -> None:
    assert set(validate(one)) == codes


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
    def missing(**carried: str) -> set[MissingNodeKeys]:
        keys = tuple(node_key(name, one) for name, names in carried.items() for one in names)
        return set(find_mistakes(keyed(*map(host, carried), keys=keys)))

    lacking = {"h1": ("C",), "h2": ("C",), "h3": ("A",)}
    assert missing(h1="AB", h2="BA", h3="BC") == {MissingNodeKeys(*one) for one in lacking.items()}
    assert missing(h1="A", h2="A") == missing() == set()


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
        host("h1"), host("h2"), vm("v1", custom_properties={"placement_keys": text}),
        keys=(node_key("h1", "_A", 1.0), node_key("h2", "_A", 0.0)),
    )  # fmt: skip


@given(TEXTS)
@example("A:1:1;B:1:1")
@example(" A:1:1")
@example("#RAM:0:100")
def test_no_text_stops_a_start_and_one_of_another_form_is_reported_and_sets_nothing(text: str) -> None:
    world, request = state(text), Request(("v1",), ("h1", "h2"))
    assert all(verdict.accepted for verdict in filter_hosts(world, request))
    assert {weight.host for weight in rank_hosts(world, request)} == {"h1", "h2"}
    reported = [one for one in find_mistakes(world) if isinstance(one, UnreadableProperty)]
    if reported:
        compiled = compiled_keys(world, "v1")
        assert reported == [UnreadableProperty("v1", text)]
        assert (dict(compiled.system), dict(compiled.customer), compiled.ignored) == ({}, {}, ())
    else:
        assert all(len(entry.split(":")) == 3 for entry in text.split(",") if text)
