"""What the engine's own searches find: members of rules, what bears a tag, jobs that have not ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ovirt_placement.engine.connection.client import EngineAway, EngineConnection, EngineFault
from ovirt_placement.engine.reading.searches import UNPARSED, is_working, search_members, tagged_ids
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server
from tests.builders import cluster, host, snapshot, vm
from tests.placement.engine.simulated import simulated
from tests.placement.engine_server import answering, connected

STATE = snapshot(
    cluster("c1", name="blue"),
    cluster("c2", name="red"),
    *(host(name, cluster="c1") for name in ("h1", "h2", "x1")),
    *(vm(name, "h1", cluster="c1", tags=("db",)) for name in ("db2", "db1")),
    vm("web1", cluster="c2"),
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with simulated(STATE) as (_, running, _):
        yield running


@pytest.fixture
def connection(server: Server) -> Iterator[EngineConnection]:
    with connected(server.api_url) as made:
        yield made


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("name=db*", ("db1", "db2")),
        ("tag=db and name!=db1", ("db2",)),
        ("name=web1 or host.name=h1 and cluster=blue", ("db1", "db2", "web1")),
        ("DB", ("db1", "db2")),
        # Found are none, which is an answer nevertheless.
        ("name=nobody", ()),
        ("tag=nothing", ()),
        ("host.name=h2 and status=up", ()),
        ("nmae=db1", ()),  # free text
    ],
)
def test_vms_are_found(connection: EngineConnection, text: str, found: tuple[str, ...]) -> None:
    answer = search_members(connection, "vms", text)
    assert (answer.found, answer.problem) == (found, "")


def test_hosts_are_found(connection: EngineConnection) -> None:
    assert search_members(connection, "hosts", "name=h*").found == ("h1", "h2")
    assert search_members(connection, "hosts", "vm.name=nobody").found == ()


@pytest.mark.parametrize("text", ["name=", "name=db* and", "name~db", "name='db1'", "status=upp", 'name="db'])
def test_what_is_no_search_is_not_taken_for_one_that_finds_nobody(
    connection: EngineConnection, text: str
) -> None:
    assert connection.get("/vms", search=text).count(b"<vm ") == 0
    answer = search_members(connection, "vms", text)
    assert (answer.found, answer.problem) == (None, UNPARSED)


def test_what_the_engine_refuses_is_a_problem_of_the_search(
    connection: EngineConnection, server: Server
) -> None:
    server.disturbances.add(Disturbance(path="search=", status=500))
    answer = search_members(connection, "vms", "name=db*")
    assert answer.found is None
    assert "500" in answer.problem
    server.disturbances.add(Disturbance(path="search=", status=503))
    with pytest.raises(EngineAway):
        search_members(connection, "vms", "name=db*")


def test_an_engine_without_vms_has_nobody_to_find() -> None:
    with simulated(snapshot(host("h1"))) as (_, _, connection):
        assert search_members(connection, "vms", "name=db*").found == ()


TAG = "ovirt-enforcer-exclude"
TAGGED = snapshot(
    host("h1", tags=(TAG,)),
    vm("a", "h1", tags=(TAG, "other")),
    vm("b", "h1", tags=("other",)),
    vm("c", tags=(TAG,)),
    vm("d", "h1"),
)


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        (TAG, {"a", "c", "h1"}),
        ("other", {"a", "b"}),
        ("ovirt-*", {"a", "c", "h1"}),
        ("ovirt-enforcer", set()),
        ("none", set()),
    ],
)
def test_what_bears_it_is_found_by_their_tag(tag: str, found: set[str]) -> None:
    with simulated(TAGGED) as (_, _, connection):
        assert tagged_ids(connection, tag) == found


def working(status: int, content: str) -> tuple[bool, list[str]]:
    """What is answered, and the requests that it took."""
    with answering(lambda path: (status, content.encode())) as (server, connection):
        return is_working(connection, "one"), server.requests


@pytest.mark.parametrize(("status", "works"), [("started", True), ("finished", False), ("failed", False)])
def test_a_job_that_has_not_ended_is_worked_on(status: str, works: bool) -> None:
    found = working(200, f"<jobs><job id='j'><status>{status}</status></job></jobs>")
    assert found == (works, ["/jobs?search=correlation_id%3Done"])
    assert working(200, "<jobs/>")[0] is False


def test_of_a_user_who_may_not_search_jobs_nothing_is_known() -> None:
    fault = "<fault><detail>not you</detail><reason>Operation Failed</reason></fault>"
    assert working(403, fault)[0] is False
    with pytest.raises(EngineFault):
        working(409, fault)
