"""The affinity units as both proxies run them: one process a call, and warm workers behind XML-RPC."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xmlrpc.client import ServerProxy

import pytest

from ovirt_placement.model import SchedulingPolicy, Snapshot
from tests.builders import (
    APART,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    pending,
    snapshot,
    vm,
)
from tests.plugins.proxy_process import proxy_url, running_proxy
from tests.plugins.published import Publisher

HOSTS = ["h1", "h2", "h3"]
THREE_HOSTS = tuple(host(name) for name in HOSTS)
PEERS_ON_H2 = snapshot(
    *THREE_HOSTS,
    vm("new"),
    vm("peer", "h2"),
    group("g", TOGETHER, "new peer"),
    group("s", vms="new", hosts_rule=SOFT_TOGETHER, hosts="h3"),
)


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return Publisher(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Publisher, ServerProxy]]:
    publisher = Publisher(tmp_path_factory.mktemp("published"))
    with running_proxy(publisher.environment) as proxy:
        proxy.discover()  # the connection is for all
        yield publisher, proxy


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("affinity.AffinityFilter().do_filter(['h1', 'h2', 'h3'], 'new', {})", ["h2"]),
        ("affinity.SoftAffinityWeight().do_score(['h1', 'h2'], 'new', {})", [("h1", 1), ("h2", 0)]),
        ("host_affinity.HostAffinityFilter().do_filter(['h1', 'h2'], 'new', {})", ["h1", "h2"]),
        ("host_affinity.HostAffinityWeight().do_score(['h1', 'h3'], 'new', None)", [("h1", 1), ("h3", 0)]),
    ],
)
def test_unit_prints_its_answer_and_nothing_else_in_a_process_of_its_own(
    publisher: Publisher, call: str, answer: object
) -> None:
    publisher.publish(PEERS_ON_H2)
    ended = publisher.run_alone(call)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ast.literal_eval(ended.stdout) == answer


def test_unit_without_a_snapshot_fails_and_names_the_configuration(publisher: Publisher) -> None:
    publisher.close()
    ended = publisher.run_alone("affinity.AffinityFilter().do_filter(['h1'], 'new', {})")
    assert ended.returncode != 0
    assert ended.stdout == ""
    assert "Undecided: no engine: " in ended.stderr.splitlines()[-1]
    assert "set url under [engine]" in ended.stderr


def filtered(shared: tuple[Publisher, ServerProxy], state: Snapshot, hosts: list[str], vm_id: str) -> Any:
    publisher, proxy = shared
    publisher.publish(state)
    reply: Any = proxy.runFilters(["AffinityFilter"], hosts, vm_id, {})
    assert reply["result_code"] == 0
    return reply["result"]


TIED = group("g", TOGETHER, "a b")
ON_H1 = (vm("a", "h1"), vm("b", "h1"), TIED)
FOE = (vm("foe", "h2"), group("n", APART, "a foe"))
MOVING = (vm("a", "h1", status="migrating"), vm("b", "h1"), pending("a", "h3"), TIED)


@pytest.mark.parametrize(
    ("state", "hosts", "asked", "left"),
    [
        (PEERS_ON_H2, "h1 h2 h3", "new", "h2"),
        # A host can be drained of a positive group, whose second VM follows the first ...
        (snapshot(*THREE_HOSTS, *ON_H1), "h2 h3", "a", "h2 h3"),
        (snapshot(*THREE_HOSTS, *MOVING), "h2 h3", "b", "h3"),
        (snapshot(*THREE_HOSTS, *ON_H1, pending("a", "h2")), "h2 h3", "a", "h2 h3"),
        # ... but apart from negative peers, and not from peers whose host is offered or is another one.
        (snapshot(*THREE_HOSTS, *ON_H1, *FOE), "h2 h3", "a", "h3"),
        (snapshot(*THREE_HOSTS, *ON_H1), "h1 h2 h3", "a", "h1"),
        (snapshot(*THREE_HOSTS, vm("a", "h1"), vm("b", "h2"), TIED), "h3", "a", ""),
        # A host that is not known has nothing on it.
        (snapshot(*THREE_HOSTS, vm("a"), vm("b", "h1"), group("g", APART, "a b")), "h1 new", "a", "new"),
    ],
)
def test_filter_answers_the_engine(
    shared: tuple[Publisher, ServerProxy], state: Snapshot, hosts: str, asked: str, left: str
) -> None:
    assert filtered(shared, state, hosts.split(), asked) == left.split()


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


def test_unit_names_and_descriptions_reach_the_policy_editor(shared: tuple[Publisher, ServerProxy]) -> None:
    _, proxy = shared
    found: Any = proxy.discover()
    assert {"AffinityFilter", "HostAffinityFilter"} <= found["filters"].keys()
    assert {"SoftAffinityWeight", "HostAffinityWeight"} <= found["scores"].keys()
    assert found["filters"]["AffinityFilter"][0].startswith("Keep the VMs of hard affinity groups together")


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
