"""Reading again a few VMs or hosts, or one cluster: what is gone is not there, and no search is trusted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection, EngineSetupError
from ovirt_placement.engine.reading.policies import PolicyReader
from ovirt_placement.engine.reading.topology import (
    read_as_reported,
    read_snapshot,
    reread_cluster,
    reread_hosts,
    reread_vms,
)
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.generate import Sizes, generate
from ovirt_simulator.http.disturbances import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests.placement.engine_server import EngineServer, serving


@contextmanager
def simulated() -> Iterator[tuple[Server, EngineConnection]]:
    state = generate(Sizes(clusters=2, hosts=60, vms=120, groups=6), 1)
    server = serve(Engine.from_snapshot(state, clock=datetime(2026, 1, 1, tzinfo=UTC), settings=PROMPT))
    settings = EngineSettings(url=server.api_url, username="admin@internal")
    try:
        with EngineConnection(settings, {"OVIRT_PASSWORD": "password"}) as connection:
            yield server, connection
    finally:
        server.close()


@pytest.mark.parametrize("count", [0, 1, 2, 12, 80, 101])
def test_what_is_read_again_is_as_in_a_whole_reading(count: int) -> None:
    with simulated() as (_, connection):
        whole = read_as_reported(connection, policies=PolicyReader())
        vms = {vm.id: vm for vm in whole.vms[:count]}
        hosts = {host.id: host for host in whole.hosts[:count]}
        assert reread_vms(connection, [*vms, "00000000-0000-0000-0000-000000000000"]) == vms
        assert reread_hosts(connection, list(hosts)) == hosts


def test_a_search_that_is_not_understood_is_not_taken_for_an_answer() -> None:
    with serving(EngineServer()) as server:
        vm = b'<vm id="%s"><name>n</name><placement_policy/><cluster id="c"/></vm>'
        server.answer = lambda path: (
            (200, b"<vms/>") if "search" in path else (200, vm % path.rpartition("/")[2].encode())
        )
        settings = EngineSettings(url=server.url, username="admin@internal")
        with EngineConnection(settings, {"OVIRT_PASSWORD": "password"}) as connection:
            ids = [f"id{number}" for number in range(20)]
            assert list(reread_vms(connection, ids)) == ids


def test_a_cluster_comes_with_its_groups_and_policy() -> None:
    with simulated() as (_, connection):
        whole = read_snapshot(connection)
        for cluster in whole.clusters:
            groups = tuple(group for group in whole.affinity_groups if group.cluster == cluster.id)
            assert reread_cluster(connection, cluster.id, PolicyReader()) == (cluster, groups)
        assert reread_cluster(connection, "00000000-0000-0000-0000-000000000000", PolicyReader()) is None


def test_several_are_asked_for_in_one_request_and_one_by_itself() -> None:
    with simulated() as (server, connection):
        ids = [vm.id for vm in read_snapshot(connection).vms]
        server.disturbances.add(Disturbance(path=f"/vms/{ids[0]}", status=500, times=None))
        assert ids[0] in reread_vms(connection, ids[:30])
        server.disturbances.add(Disturbance(path="search", status=500, times=None))
        assert len(reread_vms(connection, ids[1:2])) == 1
        server.disturbances.clear()
        server.disturbances.add(Disturbance(path="/vms/", status=500, times=None))
        assert len(reread_vms(connection, ids[1:3])) == 2


def test_malformed_xml_is_no_engines() -> None:
    with serving(EngineServer()) as server:
        server.answer = lambda path: (200, b"<vm><")
        settings = EngineSettings(url=server.url, username="admin@internal")
        with (
            EngineConnection(settings, {"OVIRT_PASSWORD": "password"}) as connection,
            pytest.raises(EngineSetupError, match="malformed XML"),
        ):
            reread_vms(connection, ["v"])
