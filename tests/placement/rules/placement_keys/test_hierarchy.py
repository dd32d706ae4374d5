"""Which keys a VM has: what stands on each level of it, its property, and its copies of sticky keys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
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
from ovirt_placement.rules.placement_keys.hierarchy import compile_keys
from ovirt_placement.rules.placement_keys.host_table import copies_after_start
from ovirt_placement.rules.placement_keys.units import compiled_keys
from tests.builders import cluster, vm
from tests.placement.rules.placement_keys.nodes import TWO_HOSTS, accepted, key, keyed, node_key
from tests.placement.rules.placement_keys.reference_keys import LADDER

#: What stands on each level for the VM below.
STANDING = {
    "cluster": "cluster1",
    "billing_entity": "quota1",
    "customer_offer": "owner1",
    "customer": "owner1",
    "image_offer": "template1",
    "image": "template1",
    "vdc_offer": "dc1",
    "vdc": "dc1",
    "server_offer": "type1",
    "server": "new",
    "disk_offer": "diskprofile1",
    "disk": "disk1",
    "network_offer": "net1",
    "network": "net1",
    "nic_offer": "profile1",
    "nic": "nic-a",
}


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
        cluster(data_center="dc1"),
        new,
        keys=keys,
        data_centers=(DataCenter(id="dc1", name="dc1"),),
        networks=(Network(id="net1", name="net1"),),
        vnic_profiles=(VnicProfile(id="profile1", name="profile1", network="net1"),),
    )


@pytest.mark.parametrize("level", STANDING)
def test_every_level_has_its_object_in_the_engine(level: str) -> None:
    state = whole_hierarchy(
        key("K", level=level, resource=STANDING[level]), key("K", level=level, resource="another")
    )
    assert compiled_keys(state, "new").system["K"].source.resource == STANDING[level]


def test_instance_type_is_a_stronger_offer_than_cpu_profile() -> None:
    on_type = key("K", 1.0, level="server_offer", resource="type1")
    on_profile = key("K", 2.0, level="server_offer", resource="cpu1")
    compiled = compiled_keys(whole_hierarchy(on_type, on_profile), "new").system["K"]
    assert (compiled.source, compiled.hidden) == (on_type, (on_profile,))


def test_bare_vm_has_the_levels_that_it_has() -> None:
    state = keyed(vm("new"), keys=(key("K", level="cluster", resource="cluster1"),))
    assert set(compiled_keys(state, "new").system) == {"K"}


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


@pytest.mark.parametrize(
    "text", ["A", "A:1", "A:x:1", "#RAM:0:100", "A:1:1;B:1:1", "A:1:1,", "A=1:1", " A:1:1"]
)
def test_property_that_cannot_be_read_is_ignored_and_stops_no_start(text: str) -> None:
    state = keyed(*TWO_HOSTS, vm("new", custom_properties={"placement_keys": text}))
    assert compiled_keys(state, "new").customer == {}
    assert accepted(state) == ["h1", "h2"]


def test_sticky_copy_is_weaker_than_the_server_and_stronger_than_its_offer() -> None:
    copy = StickyCopy(vm="new", name="K", value=2, weight=60)
    offer = key("K", 3.0, level="server_offer", resource="type1")
    assert (
        compiled_keys(keyed(vm("new", instance_type="type1"), keys=(offer,), copies=(copy,)), "new")
        .system["K"]
        .value
        == 2
    )
    assert (
        compiled_keys(keyed(vm("new"), keys=(key("K", 4.0),), copies=(copy,)), "new").system["K"].value == 4
    )


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


def test_full_ladder() -> None:
    keys = [key("K", float(number), 1.0 + number, level) for number, level in enumerate(LADDER)]
    for strongest in range(len(LADDER)):
        winner = compile_keys(reversed(keys[: strongest + 1])).system["K"]
        assert (winner.value, winner.weight) == (strongest, 1 + strongest)
        assert winner.source.level == LADDER[strongest]
        assert [hidden.level for hidden in winner.hidden] == list(LADDER[:strongest])


def test_ignored_key_says_why() -> None:
    (ignored,) = compile_keys([key("K", key_class="customer", level="vdc"), node_key("h1", "K")]).ignored
    assert ignored.codes == ("customer-key-not-allowed-here",)


def test_wrong_sticky_flag_hides_no_key() -> None:
    assert compile_keys([key("K", sticky=True)]).system["K"].value == 1


def test_on_one_resource_the_customer_beats_the_billing_entity_in_any_order() -> None:
    keys = [key("K", 1.0, key_class="customer"), key("K", 2.0, key_class="be")]
    assert [compile_keys(order).customer["K"].value for order in (keys, keys[::-1])] == [1, 1]
