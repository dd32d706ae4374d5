"""Who is on a host: which VMs count there, with what they take and with the keys that they bring."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from ovirt_placement.model import Pending
from ovirt_placement.rules.placement_keys.placing import decide_vm
from ovirt_placement.rules.placement_keys.presence import present_set
from ovirt_placement.rules.placement_keys.settings import KeySettings
from tests.builders import cluster, host, pending, vm
from tests.placement.rules.placement_keys.nodes import REPEL, TWO_HOSTS, key, keyed, ranks


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
        vm("starting", memory_mb=1024),
        vm("moving", "h2", status="migrating", memory_mb=1024),
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
    booked = keyed(host("h1", memory_mb=8192, free_mb=0), vm("new", memory_mb=1024), pending("new", "h1"))
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
    decision = decide_vm(state, state.vm_by_id["new"], ("h1", "h2"), KeySettings(overhead_mb=0))
    found = [
        {match.key.name: float(match.found) for match in one.system.matches}
        for one in decision.hosts
        if one.system
    ]
    assert found == [{"#RAM": 0.25, "#CPU": 0.75, "#LOAD": 0.25}, {"#RAM": 0, "#CPU": 0}]


@pytest.mark.parametrize(
    ("fields", "threads_count", "found"),
    [
        ({"load_average_5m": 1.2}, False, 0.3),
        ({"load_average_5m": 1.2, "threads": 8}, False, 0.3),
        ({"load_average_5m": 1.2, "threads": 8}, True, 0.15),
        ({"load_average_5m": 1.2}, True, 0.3),
        ({"load_average_5m": 0}, False, 0),
        ({"load_average_5m": 4.1}, False, 1),
        ({"load_average_5m": 1.2, "cpu_percent": None}, False, 0.3),
        ({"load_average_5m": 1.2, "cores": 0}, False, 0.9),
        ({}, False, 0.9),
        ({"cpu_percent": None}, False, None),
    ],
)
def test_load_goes_by_the_load_average_of_the_cpus_where_the_policy_says_so(
    fields: dict[str, Any], threads_count: bool, found: float | None
) -> None:
    busy = host("h1", **{"cores": 4, "cpu_percent": 90} | fields)
    state = keyed(cluster(count_threads_as_cores=threads_count), busy, vm("new"), keys=(key("#LOAD", 0.0),))

    def load(settings: KeySettings) -> list[Fraction]:
        (here,) = decide_vm(state, state.vm_by_id["new"], ("h1",), settings).hosts
        assert here.system is not None
        return [match.found for match in here.system.matches]

    assert load(KeySettings(load_average=True)) == ([] if found is None else [Fraction(str(found))])
    assert load(KeySettings()) == ([] if busy.cpu_percent is None else [Fraction(9, 10)])


def test_present_set_is_what_a_start_would_freeze() -> None:
    state = keyed(vm("new"), keys=(REPEL, key("S"), key("_G", 0.5, key_class="be")))
    assert dict(present_set(state, state.vm_by_id["new"])) == {"Repel1": 1.0, "_G": 0.5}
