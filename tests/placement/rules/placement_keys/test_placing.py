"""Placements within a snapshot: what stands on each level, who is on a host, and the units' answers."""

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
    Pending,
    PlacementKey,
    Snapshot,
    StickyCopy,
    VnicProfile,
)
from ovirt_placement.rules.placement_keys.placing import compiled_keys, decide_vm, filter_hosts, rank_hosts
from ovirt_placement.rules.placement_keys.presence import present_set
from ovirt_placement.rules.placement_keys.settings import DEFAULTS, Settings
from ovirt_placement.rules.placement_keys.sticky import copies_after_start
from ovirt_placement.rules.verdict import Kind, Reason, Request
from tests.builders import cluster, host, pending, vm
from tests.placement.rules.placement_keys.parts import key, keyed, node_key

TWO_HOSTS = (host("h1"), host("h2"))


def asked(*hosts: str, vms: str = "new") -> Request:
    return Request(tuple(vms.split()), hosts or ("h1", "h2"))


def ranks(state: Snapshot, *hosts: str, **options: Any) -> dict[str, int]:
    return {weight.host: weight.rank for weight in rank_hosts(state, asked(*hosts), **options)}


def accepted(state: Snapshot, *hosts: str, settings: Settings = DEFAULTS) -> list[str]:
    return [verdict.host for verdict in filter_hosts(state, asked(*hosts), settings) if verdict.accepted]


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


REPEL = key("Repel1", weight=-100.0, key_class="customer")


def test_recorded_keys_count_and_present_ones_where_nothing_is_recorded() -> None:
    edited = key("Repel1", key_class="customer", resource="a")
    state = keyed(
        *TWO_HOSTS,
        vm("new"),
        vm("a", "h1"),
        vm("b", "h2"),
        keys=(REPEL, edited, key("Repel1", key_class="customer", resource="b")),
        frozen={"a": {}},
    )
    assert ranks(state) == {"h1": 0, "h2": 1}


def test_six_starts_one_after_another_spread_over_three_hosts() -> None:
    hosts, names = ("h1", "h2", "h3"), [f"vm{number}" for number in range(6)]
    at: dict[str, str] = {}
    for name in names:
        state = keyed(
            *(host(one) for one in hosts),
            *(vm(one, at.get(one)) for one in names),
            keys=tuple(key("Repel1", weight=-100.0, key_class="customer", resource=one) for one in names),
        )
        decision = decide_vm(state, state.vm_by_id[name], hosts)
        at[name] = decision.choice[0]
    assert sorted(at.values()) == sorted(hosts * 2)


def test_vm_on_its_way_counts_where_it_goes() -> None:
    on_their_way = keyed(
        *TWO_HOSTS,
        vm("new"),
        vm("starting"),
        vm("moving", "h2", status="migrating"),
        pending("starting", "h1"),
        pending("moving", "h1"),
        keys=(REPEL,),
        frozen={"moving": {"Repel1": 1.0}},
    )
    decision = decide_vm(on_their_way, on_their_way.vm_by_id["new"], ("h1", "h2"))
    assert [one.customer.total for one in decision.hosts if one.customer] == [-100, 0]
    # Memory is held at both ends of a migration, and where a start is promised.
    assert [one.room.uncontended_mb for one in decision.hosts] == [65536 - 2048, 65536 - 1024]


def test_record_of_an_earlier_run_does_not_count_for_a_start() -> None:
    state = keyed(
        *TWO_HOSTS,
        vm("new"),
        vm("starting"),
        pending("starting", "h1"),
        keys=(REPEL, key("Repel1", key_class="customer", resource="starting")),
        frozen={"starting": {}},
    )
    assert ranks(state) == {"h2": 0, "h1": 1}


def test_what_is_promised_to_a_start_counts_as_promised_and_is_not_in_use_yet() -> None:
    measured = {"memory_mb": 8192, "memory_free_mb": 4096, "free_mb": 0}
    promise = Pending(vm="other", host="h1", memory_mb=2048)
    state = keyed(host("h1", **measured), vm("other"), vm("new"), pending("new", "h1"), promise)
    (here,) = decide_vm(state, state.vm_by_id["new"], ("h1",)).hosts
    assert (here.room.uncontended_mb, here.room.contended_mb) == (8192 - 2048, 4096)
    booked = keyed(host("h1", memory_mb=8192, free_mb=0), vm("new"), pending("new", "h1"))
    (here,) = decide_vm(booked, booked.vm_by_id["new"], ("h1",)).hosts
    assert (here.room.uncontended_mb, here.room.contended_mb) == (8192, 1024)


@pytest.mark.parametrize(("threads_count", "share"), [(False, 0.5), (True, 0.25)])
def test_threads_are_cpus_where_the_cluster_says_so(threads_count: bool, share: float) -> None:
    state = keyed(
        cluster(count_threads_as_cores=threads_count),
        host("h1", cores=4, threads=8),
        vm("new"),
        vm("a", "h1", vcpus=2),
        keys=(key("#CPU", 0.0),),
    )
    (here,) = decide_vm(state, state.vm_by_id["new"], ("h1",)).hosts
    assert here.system is not None
    assert [match.found for match in here.system.matches] == [share]


def test_vm_never_counts_against_itself() -> None:
    full = host("h1", memory_mb=10240, free_mb=1)
    state = keyed(
        full, host("h2"), vm("new", "h1", memory_mb=8192), keys=(REPEL,), frozen={"new": {"Repel1": 1}}
    )
    decision = decide_vm(state, state.vm_by_id["new"], ("h1", "h2"))
    here = decision.hosts[0]
    assert here.customer is not None
    assert (here.room.uncontended_mb, here.room.contended_mb, here.customer.total) == (10240, 8193, 0)


def test_special_keys_follow_allocation_and_load() -> None:
    state = keyed(
        cluster(memory_overcommit_percent=200, cpu_overcommit_percent=50, count_threads_as_cores=True),
        host("h1", memory_mb=1000, memory_free_mb=10**6, cores=4, threads=8, cpu_percent=25),
        host("h2", memory_mb=1000, memory_free_mb=10**6, cpu_percent=None),
        vm("new", memory_mb=0),
        vm("a", "h1", memory_mb=500, vcpus=3),
        keys=tuple(
            key(name, 0.0, 100.0, "cluster", resource="cluster1") for name in ("#RAM", "#CPU", "#LOAD")
        ),
    )
    decision = decide_vm(state, state.vm_by_id["new"], ("h1", "h2"), Settings(overhead_mb=0))
    found = [
        {match.key.name: float(match.found) for match in one.system.matches}
        for one in decision.hosts
        if one.system
    ]
    assert found == [{"#RAM": 0.25, "#CPU": 0.75, "#LOAD": 0.25}, {"#RAM": 0, "#CPU": 0}]


@pytest.mark.parametrize(
    ("fields", "kind", "number"),
    [
        ({"status": "maintenance"}, Kind.HOST_NOT_UP, None),
        ({"memory_mb": 2048}, Kind.MEMORY_HANDED_OUT, 2048),
        ({"memory_free_mb": 2048}, Kind.MEMORY_IN_USE, 2048),
        ({"free_mb": 1024}, Kind.MEMORY_IN_USE, 1024),
    ],
)
def test_host_without_room_is_refused_by_what_it_lacks(
    fields: dict[str, Any], kind: Kind, number: int
) -> None:
    (verdict,) = filter_hosts(keyed(host("h1", **fields), vm("new")), asked("h1"))
    assert verdict.reasons == (Reason(kind, host="h1", number=number),)


@pytest.mark.parametrize("fields", [{"memory_mb": 2049}, {"memory_free_mb": 2049}, {"free_mb": 1025}])
def test_one_mebibyte_more_is_enough(fields: dict[str, Any]) -> None:
    assert accepted(keyed(host("h1", **fields), vm("new")), "h1") == ["h1"]


def test_filter_keeps_worse_rounds_and_refuses_what_is_below_the_last() -> None:
    state = keyed(
        *(host(f"h{number}") for number in range(1, 4)),
        vm("new"),
        keys=(
            key("GEN", 1.0, 90.0),
            key("PRIV", 1.0, -100.0),
            *(node_key(f"h{number}", "GEN", gen) for number, gen in ((1, 1.0), (2, 0.5), (3, 1.0))),
            *(node_key(f"h{number}", "PRIV", private) for number, private in ((1, 0.0), (2, 0.0), (3, 1.0))),
        ),
    )
    assert accepted(state, "h1", "h2", "h3") == ["h1", "h2"]
    assert ranks(state, "h3", "h2", "h1") == {"h1": 0, "h2": 1, "h3": 2}
    assert filter_hosts(state, asked("h3"))[0].reasons == (Reason(Kind.KEYS_REFUSE, host="h3", number=-10),)
    assert rank_hosts(state, asked("h2"))[0].reasons == (Reason(Kind.KEYS_ROUND, host="h2", number=5),)
    assert rank_hosts(state, asked("h2"), explained=False)[0].reasons == ()
    assert ranks(state, "h3", "h2", "h1", explained=False) == ranks(state, "h3", "h2", "h1")


def test_ties_stand_in_the_order_given_or_stay_ties() -> None:
    state = keyed(*TWO_HOSTS, host("h3", status="maintenance"), vm("new"))
    hosts = ("h1", "h2", "h3")
    assert ranks(state, *hosts) == {"h1": 0, "h2": 0, "h3": 1}
    assert ranks(state, *hosts, tie_order=("h3", "h2", "h1")) == {"h2": 0, "h1": 1, "h3": 2}


def test_failover_host_comes_after_all_acceptable_and_before_refused_ones() -> None:
    state = keyed(
        host("h1", failover=True),
        host("h2"),
        host("h3", status="maintenance"),
        vm("new"),
        keys=(key("GEN"), node_key("h1", "GEN", 1.0), node_key("h2", "GEN", 0.0)),
    )
    assert ranks(state, "h1", "h2", "h3") == {"h2": 0, "h1": 1, "h3": 2}


def test_local_storage_takes_what_the_engine_offers() -> None:
    state = keyed(
        cluster(data_center="local"),
        host("h1", memory_mb=1),
        vm("new"),
        keys=(key("K", weight=-200.0), node_key("h1", "K", 1.0)),
        data_centers=(DataCenter(id="local", name="local", local_storage=True),),
    )
    assert accepted(state, "h1") == ["h1"]
    assert ranks(state, "h1") == {"h1": 0}


def test_unknown_vm_is_free_and_unknown_host_is_refused() -> None:
    assert accepted(keyed(*TWO_HOSTS)) == ["h1", "h2"]
    assert accepted(keyed(*TWO_HOSTS, vm("new")), "h1", "h9") == ["h1"]


def test_two_vms_are_placed_where_both_may_be() -> None:
    state = keyed(
        *TWO_HOSTS,
        vm("new"),
        vm("other"),
        keys=(
            key("K", weight=50.0),
            key("K", weight=-200.0, resource="other"),
            node_key("h1", "K", 1.0),
            node_key("h2", "K", 0.0),
        ),
    )
    verdicts = filter_hosts(state, asked(vms="new other"))
    assert [verdict.accepted for verdict in verdicts] == [False, True]
    assert [weight.rank for weight in rank_hosts(state, asked(vms="new other"))] == [1, 0]


def test_reserved_names_come_from_vms_only_where_the_settings_say_so() -> None:
    green = key("_GREEN", weight=50.0, key_class="customer")
    state = keyed(
        *TWO_HOSTS,
        vm("new"),
        vm("a", "h1"),
        vm("b", "h1"),
        keys=(green, node_key("h1", "_GREEN", 0.0), node_key("h2", "_GREEN", 1.0)),
        frozen={"a": {"_GREEN": 1.0}, "b": {"_GREEN": 1.0}},
    )
    assert ranks(state) == {"h2": 0, "h1": 1}
    assert ranks(state, settings=Settings(reserved_from_vms=True)) == {"h1": 0, "h2": 1}


def test_present_set_is_what_a_start_would_freeze() -> None:
    state = keyed(vm("new"), keys=(REPEL, key("S"), key("_G", 0.5, key_class="be")))
    assert dict(present_set(state, state.vm_by_id["new"])) == {"Repel1": 1.0, "_G": 0.5}


@given(st.data())
def test_best_rank_is_the_choice_for_every_set_of_hosts(data: st.DataObject) -> None:
    values, weights = st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([-100.0, 33.3, 80.0])
    hosts = ("h1", "h2", "h3", "h4")
    state = keyed(
        *(host(one, memory_mb=data.draw(st.sampled_from([65536, 1024]))) for one in hosts),
        vm("new"),
        *(vm(f"on-{one}", one) for one in hosts),
        keys=(
            key("A", data.draw(values), data.draw(weights)),
            key("B", data.draw(values), data.draw(weights), key_class="customer"),
            *(node_key(one, "A", data.draw(values)) for one in hosts),
        ),
        frozen={f"on-{one}": {"B": data.draw(values)} for one in hosts},
    )
    for candidates in (hosts, hosts[1:], hosts[::-1], hosts[::2], hosts[:1]):
        decision = decide_vm(state, state.vm_by_id["new"], candidates)
        may = accepted(state, *candidates)
        found = ranks(state, *candidates)
        assert set(decision.choice) == {one for one in may if found[one] == min(found.values())}
        assert set(found.values()) == set(range(len(set(found.values()))))
        assert all(found[one] > found[other] for one in candidates for other in may if one not in may)
