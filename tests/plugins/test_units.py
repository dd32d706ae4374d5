"""The policy units in warm workers behind XML-RPC, as the engine asks them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xmlrpc.client import ServerProxy

import pytest
from msgspec.structs import replace

from ovirt_placement.model import FrozenKeys, SchedulingPolicy, Snapshot
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    key,
    node_key,
    pending,
    snapshot,
    vm,
)
from tests.plugins.proxy_process import proxy_url, running_proxy
from tests.plugins.published import Publisher, answered_alone, run_alone

HOSTS = ["h1", "h2", "h3"]
THREE_HOSTS = tuple(host(name) for name in HOSTS)
PEERS_ON_H2 = snapshot(
    *THREE_HOSTS,
    vm("new"),
    vm("peer", "h2"),
    group("g", TOGETHER, "new peer"),
    group("s", vms="new", hosts_rule=SOFT_TOGETHER, hosts="h3"),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Publisher, ServerProxy]]:
    publisher = Publisher(tmp_path_factory.mktemp("published"))
    with running_proxy(publisher.environment) as proxy:
        proxy.discover()  # the connection is for all
        yield publisher, proxy


def test_unit_without_a_snapshot_fails_and_names_the_configuration(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    publisher.close()
    call = "affinity.AffinityFilter().do_filter(['h1'], 'new', {})"
    ended = run_alone(call, publisher.environment)
    assert ended.returncode != 0
    assert ended.stdout == ""
    assert "Undecided: no engine: " in ended.stderr.splitlines()[-1]
    assert "set url under [engine]" in ended.stderr


TIED = (vm("a", "h1"), vm("b", "h1"), group("g", TOGETHER, "a b"))
FOE = (vm("foe", "h2"), group("n", APART, "a foe"))


@pytest.mark.parametrize(
    ("state", "hosts", "asked", "left"),
    [
        (PEERS_ON_H2, "h1 h2 h3", "new", "h2"),
        # A host can be drained of a positive group, whose second VM follows the first.
        (snapshot(*THREE_HOSTS, *TIED, pending("a", "h2")), "h2 h3", "a", "h2 h3"),
        (snapshot(*THREE_HOSTS, *TIED, *FOE), "h2 h3", "a", "h3"),
        (snapshot(*THREE_HOSTS, *TIED), "h1 h2 h3", "a", "h1"),
        # A host that is not known has nothing on it.
        (snapshot(*THREE_HOSTS, vm("a"), vm("b", "h1"), group("g", APART, "a b")), "h1 new", "a", "new"),
    ],
)
def test_filter_answers_the_engine(
    shared: tuple[Publisher, ServerProxy], state: Snapshot, hosts: str, asked: str, left: str
) -> None:
    publisher, proxy = shared
    publisher.publish(state)
    reply: Any = proxy.runFilters(["AffinityFilter"], hosts.split(), asked, {})
    assert (reply["result_code"], reply["result"]) == (0, left.split())


def test_scores_have_every_host_and_the_unit(shared: tuple[Publisher, ServerProxy]) -> None:
    publisher, proxy = shared
    publisher.publish(PEERS_ON_H2)
    units = [["SoftAffinityWeight", 2], ["HostAffinityWeight", 20]]
    reply: Any = proxy.runCostFunctions(units, [*HOSTS, "unknown"], "new", {})
    assert sorted(map(tuple, reply["result"])) == [
        ("h1", 1, "HostAffinityWeight"),
        ("h1", 1, "SoftAffinityWeight"),
        ("h2", 0, "SoftAffinityWeight"),
        ("h2", 1, "HostAffinityWeight"),
        ("h3", 0, "HostAffinityWeight"),
        ("h3", 1, "SoftAffinityWeight"),
        ("unknown", 1, "HostAffinityWeight"),
        ("unknown", 1, "SoftAffinityWeight"),
    ]


def test_vm_with_soft_rules_that_nobody_weighs_is_refused_where_the_policy_says_so(
    shared: tuple[Publisher, ServerProxy],
) -> None:
    publisher, proxy = shared
    parts = (*THREE_HOSTS, vm("new"), vm("peer", "h1"), group("s", SOFT_APART, "new peer", name="far"))
    publisher.publish(snapshot(cluster(scheduling_policy=SchedulingPolicy()), *parts))
    reported: Any = proxy.runFilters(["AffinityFilter"], HOSTS, "new", {})
    assert (reported["result_code"], reported["result"]) == (0, HOSTS)
    refusing = {"affinity_missing_unit": "reject"}
    refused: Any = proxy.runFilters(["AffinityFilter"], HOSTS, "new", refusing)
    (complaint,) = refused["plugin_errors"]["AffinityFilter"]
    assert refused["result"] == []
    assert "affinity group far has a soft rule for VM new" in complaint
    assert "does not enable SoftAffinityWeight" in complaint
    call = f"affinity.AffinityFilter().do_filter({HOSTS}, 'new', {refusing})"
    assert answered_alone(call, publisher.environment) == [], "the old proxy takes a failure for consent"


@pytest.mark.parametrize(
    ("hosts", "headers"),
    [
        (["h2"], []),
        (["h2", "h3"], []),
        (HOSTS, []),
        (["h3"], [("X-Trouble-Shooting", "1")]),
        (HOSTS, [("X-Trouble-Shooting", "1")]),
    ],
)
def test_what_a_person_asks_about_a_peer_changes_no_answer(
    tmp_path: Path, hosts: list[str], headers: list[tuple[str, str]]
) -> None:
    publisher = Publisher(tmp_path)
    publisher.publish(PEERS_ON_H2)
    with (
        proxy_url(publisher.environment) as url,
        ServerProxy(url) as engine,
        ServerProxy(url, headers=headers) as person,
    ):
        for _ in range(2):
            reply: Any = engine.runFilters(["AffinityFilter"], HOSTS, "new", {})
            assert reply["result"] == ["h2"]
            person.runFilters(["AffinityFilter"], hosts, "peer", {})
            person.runCostFunctions([["SoftAffinityWeight", 1]], hosts, "peer", {})


# -- HA reservation.
RESERVING = cluster(ha_reservation=True)


def vm_id(number: int) -> str:
    """An id as the engine has them: the proxy passes on no other."""
    return f"00000000-0000-0000-0000-{number:012d}"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Publisher, ServerProxy]]:
    """A proxy of its own for each test: the balance remembers since when hosts have been overloaded."""
    publisher = Publisher(tmp_path)
    with running_proxy(publisher.environment) as proxy:
        yield publisher, proxy


def balanced(served: tuple[Publisher, ServerProxy], hosts: list[str], **parameters: str) -> Any:
    _, proxy = served
    properties = {f"ha_balance_{name}": value for name, value in parameters.items()}
    reply: Any = proxy.runLoadBalancing("HaReservationBalance", hosts, properties)
    assert reply["result_code"] == 0
    return reply["result"]


def test_balance_spreads_ha_before_load_and_answers_two_fields_when_all_is_even(
    served: tuple[Publisher, ServerProxy],
) -> None:
    publisher, _ = served
    crowd = [vm(vm_id(number), "h1", ha=True) for number in range(2)]
    publisher.publish(
        snapshot(
            RESERVING,
            host("h1", cpu_percent=95),
            host("h2"),
            host("h3"),
            *crowd,
            vm(vm_id(9), "h1", usage_cpu_percent=1),
        )
    )
    assert balanced(served, HOSTS) == [vm_id(0), ["h2", "h3"]]
    assert balanced(served, HOSTS, over_utilization="301") == [vm_id(9), ["h2", "h3"]]
    publisher.publish(snapshot(RESERVING, *map(host, HOSTS), crowd[0]))
    assert (balanced(served, HOSTS), balanced(served, ["unknown"])) == (["", []], ["", []])


def test_load_moves_no_ha_vm_to_where_it_would_crowd(served: tuple[Publisher, ServerProxy]) -> None:
    publisher, _ = served
    spread = [vm(vm_id(number), f"h{number}", ha=True) for number in (1, 2)]
    busy = host("h1", cpu_percent=95)
    publisher.publish(snapshot(RESERVING, busy, host("h2"), *spread))
    assert balanced(served, ["h1", "h2"]) == ["", []]
    publisher.publish(snapshot(cluster(), busy, host("h2"), *spread))
    assert balanced(served, ["h1", "h2"]) == [vm_id(1), ["h2"]]


def test_host_must_stay_overloaded_for_the_minutes_set(served: tuple[Publisher, ServerProxy]) -> None:
    """Only what is overloaded at the first look is taken to have been so for long."""
    publisher, _ = served
    publisher.publish(snapshot(host("h1"), host("h2"), vm("a", "h1")))
    assert balanced(served, ["h1", "h2"]) == ["", []]
    publisher.publish(snapshot(host("h1", cpu_percent=95), host("h2"), vm("a", "h1")))
    assert balanced(served, ["h1", "h2"]) == ["", []]


def test_parameters_reach_the_policy_editor(served: tuple[Publisher, ServerProxy]) -> None:
    _, proxy = served
    found: Any = proxy.discover()
    assert "ha_measure=(resources|vms);ha_weight_scale_down=" in found["scores"]["HaReservationWeight"][1]
    names = [part.partition("=")[0] for part in found["balance"]["HaReservationBalance"][1].split(";")]
    assert len(names) == 7
    assert all(name == "ha_measure" or name.startswith("ha_balance_") for name in names)


def test_admission_control_refuses_a_start_that_takes_the_reserve(
    served: tuple[Publisher, ServerProxy],
) -> None:
    publisher, proxy = served
    new = vm_id(1)
    hosts = host("h1"), host("h2", free_mb=4000), host("h3", free_mb=2000)
    db = vm(vm_id(2), "h1", ha=True, needs_mb=4000)
    publisher.publish(snapshot(RESERVING, *hosts, db, vm(new, needs_mb=1000)))
    answer: Any = proxy.runFilters(["HaAdmissionFilter"], HOSTS, new, {})
    assert (answer["result_code"], sorted(answer["result"])) == (0, ["h1", "h3"])
    ranks: Any = proxy.runCostFunctions([["HaAdmissionWeight", 1]], HOSTS, new, {})
    assert {each[0]: each[1] for each in ranks["result"]} == {"h1": 0, "h2": 1, "h3": 0}
    moved: Any = proxy.runFilters(["HaAdmissionFilter"], ["h2", "h3"], db.id, {})
    assert sorted(moved["result"]) == ["h2", "h3"]


# -- Placement keys.
KEYED = ["h1", "h2", "h3", "h4", "h5"]
KEYS = (
    *(node_key(name, "GEN", value) for name, value in zip(KEYED, (1, 1, 0.5, 0, 0), strict=True)),
    *(node_key(name, "PRIVATE", float(name == "h4")) for name in KEYED),
    key("GEN", 1, 60, "cluster", resource=CLUSTER),
    key("PRIVATE", 1, -200, "cluster", resource=CLUSTER),
)


@pytest.fixture
def keyed(shared: tuple[Publisher, ServerProxy]) -> ServerProxy:
    """Round 3 on h1 and h2, 6 on h3, the last on h5; h4 is private. A web server runs on h1."""
    publisher, proxy = shared
    state = snapshot(
        *(host(name, memory_free_mb=30000) for name in KEYED),
        vm("web1", "h1"),
        vm("new", custom_properties={"placement_keys": "Repel1:1:-100"}),
        vm("large", memory_mb=29000),
    )
    recorded = FrozenKeys("web1", (("Repel1", 1.0),))
    publisher.publish(replace(state, placement_keys=KEYS, frozen_keys=(recorded,)))
    return proxy


def accepted(proxy: ServerProxy, vm_id: str, *hosts: str, **parameters: str) -> list[str]:
    asked = {f"placement_{name}": value for name, value in parameters.items()}
    reply: Any = proxy.runFilters(["PlacementKeyFilter"], list(hosts) or KEYED, vm_id, asked)
    assert reply["result_code"] == 0, reply
    return list(reply["result"])


def ranks(proxy: ServerProxy, vm_id: str, *hosts: str, tie: str = "engine", **others: str) -> dict[str, int]:
    asked = {f"placement_{name}": value for name, value in {"tie": tie, **others}.items()}
    reply: Any = proxy.runCostFunctions([("PlacementKeyWeight", 1)], list(hosts) or KEYED, vm_id, asked)
    assert reply["result_code"] == 0, reply
    return {found: rank for found, rank, _ in reply["result"]}


def test_filter_keeps_every_round_and_refuses_what_the_operator_refuses(keyed: ServerProxy) -> None:
    assert (accepted(keyed, "new"), accepted(keyed, "new", "h4")) == (["h1", "h2", "h3", "h5"], [])
    assert (accepted(keyed, "new", final="0"), accepted(keyed, "large")) == (["h1", "h2", "h3"], [])
    assert accepted(keyed, "large", overhead="999") == ["h1", "h2", "h3", "h5"]


def test_weight_orders_by_round_then_by_the_customer_and_answers_for_every_host(keyed: ServerProxy) -> None:
    assert ranks(keyed, "new") == {"h2": 0, "h1": 1, "h3": 2, "h5": 3, "h4": 4}
    assert ranks(keyed, "new", "h4") == {"h4": 0}
    # One round for all that are acceptable: only the customer is left.
    assert ranks(keyed, "new", steps="1") == {"h2": 0, "h3": 0, "h5": 0, "h1": 1, "h4": 2}


def test_a_tie_is_drawn_unless_the_engine_shall_decide(keyed: ServerProxy) -> None:
    assert ranks(keyed, "large", "h1", "h2", overhead="0") == {"h1": 0, "h2": 0}
    first: set[str] = set()
    while first != {"h1", "h2"}:  # that it never ends is as likely as that no one ever wins a lottery
        found = ranks(keyed, "large", "h1", "h2", "h3", tie="random", overhead="0")
        assert (sorted(found.values()), found["h3"]) == ([0, 1, 2], 2)
        first.add(min(found, key=found.__getitem__))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("initial", ["80", "-10", "0.5"], ["", "x", "1e3", "1.", "80 "]),
        ("final", ["-10", "0"], ["--1"]),
        ("steps", ["1", "10", "100"], ["0", "101", "1.5"]),
        ("overhead", ["0", "1024"], ["-1", "1.5"]),
        ("memory_ratio", ["1", "1.50", "0.25", "0.50", "0.0001"], ["0", "0.0", "0.0000", "-1", "1000"]),
        ("cpu_ratio", ["4", "0.5"], ["0"]),
        ("reserved_from_vms", ["true", "false"], ["yes"]),
        ("load", ["cpu", "average"], ["", "load", "cpuaverage"]),
        ("tie", ["random", "engine"], ["ran"]),
    ],
)
def test_the_engine_lets_only_numbers_in_that_can_be(
    shared: tuple[Publisher, ServerProxy], name: str, good: list[str], bad: list[str]
) -> None:
    found: Any = shared[1].discover()
    declared = found["scores"]["PlacementKeyWeight"][1]
    patterns = dict(part.split("=", 1) for part in declared.split(";"))
    assert all(re.fullmatch(patterns[f"placement_{name}"], value) for value in good)
    assert not any(re.fullmatch(patterns[f"placement_{name}"], value) for value in bad)
    assert found["filters"]["PlacementKeyFilter"][1] == declared.rpartition(";")[0]
