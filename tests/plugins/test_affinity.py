"""The affinity units in warm workers behind XML-RPC."""

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
from tests.plugins.published import Publisher, run_alone

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
