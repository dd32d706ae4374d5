"""The policy units in warm workers behind XML-RPC, as the engine asks them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xmlrpc.client import ServerProxy

import pytest

from ovirt_placement.model import SchedulingPolicy
from tests.builders import SOFT_APART, SOFT_TOGETHER, TOGETHER, cluster, group, host, snapshot, vm
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


def test_filter_answers_the_engine(shared: tuple[Publisher, ServerProxy]) -> None:
    publisher, proxy = shared
    publisher.publish(PEERS_ON_H2)
    reply: Any = proxy.runFilters(["AffinityFilter"], HOSTS, "new", {})
    assert (reply["result_code"], reply["result"]) == (0, ["h2"])


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
    hosts = host("h1"), host("h2", free_mb=4000), host("h3", free_mb=2000)
    publisher.publish(snapshot(RESERVING, *hosts, vm("db", "h1", ha=True, needs_mb=4000), vm("new")))
    answer: Any = proxy.runFilters(["HaAdmissionFilter"], HOSTS, "new", {})
    assert (answer["result_code"], sorted(answer["result"])) == (0, ["h1", "h3"])
    ranks: Any = proxy.runCostFunctions([["HaAdmissionWeight", 1]], HOSTS, "new", {})
    assert {each[0]: each[1] for each in ranks["result"]} == {"h1": 0, "h2": 1, "h3": 0}


# -- Placement keys.
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
