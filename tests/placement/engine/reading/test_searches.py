"""Who a search finds, and whether it is one: the engine answers a mistaken one with an empty list."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineAway, EngineConnection, connect
from ovirt_placement.engine.reading.searches import UNPARSED, search_members
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.disturbances import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests.builders import cluster, host, snapshot, vm
from tests.configuration import write_password

STATE = snapshot(
    cluster("c1", name="blue"),
    cluster("c2", name="red"),
    *(host(name, cluster="c1") for name in ("h1", "h2", "x1")),
    *(vm(name, "h1", cluster="c1", tags=("db",)) for name in ("db2", "db1")),
    vm("web1", cluster="c2"),
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with closing(serve(Engine.from_snapshot(STATE, clock=datetime(2026, 1, 1, tzinfo=UTC)))) as running:
        yield running


@pytest.fixture
def connection(server: Server, tmp_path: Path) -> Iterator[EngineConnection]:
    settings = EngineSettings(
        url=server.api_url, username="admin@internal", password_file=write_password(tmp_path)
    )
    with connect(settings) as made:
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


def test_an_engine_without_vms_has_nobody_to_find(tmp_path: Path) -> None:
    engine = Engine.from_snapshot(snapshot(host("h1")), clock=datetime(2026, 1, 1, tzinfo=UTC))
    with closing(serve(engine)) as running:
        settings = EngineSettings(
            url=running.api_url, username="admin@internal", password_file=write_password(tmp_path)
        )
        with connect(settings) as made:
            assert search_members(made, "vms", "name=db*").found == ()
