"""Reading again a few VMs or hosts, or one cluster: what is gone is not there, and no search is trusted."""

from __future__ import annotations

import pytest

from ovirt_placement.engine.connection.client import EngineSetupError
from ovirt_placement.engine.reading.policies import PolicyReader
from ovirt_placement.engine.reading.topology import (
    read_as_reported,
    read_snapshot,
    reread_cluster,
    reread_hosts,
    reread_vms,
)
from ovirt_simulator.generate import Sizes, generate
from ovirt_simulator.http.control import Disturbance
from tests.placement.engine.simulated import simulated
from tests.placement.engine_server import answering

STATE = generate(Sizes(clusters=2, hosts=60, vms=120, groups=6), 1)


@pytest.mark.parametrize("count", [0, 1, 2, 12, 80, 101])
def test_what_is_read_again_is_as_in_a_whole_reading(count: int) -> None:
    with simulated(STATE) as (_, _, connection):
        whole = read_as_reported(connection, policies=PolicyReader())
        vms = {vm.id: vm for vm in whole.vms[:count]}
        hosts = {host.id: host for host in whole.hosts[:count]}
        assert reread_vms(connection, [*vms, "00000000-0000-0000-0000-000000000000"]) == vms
        assert reread_hosts(connection, list(hosts)) == hosts


def test_a_search_that_is_not_understood_is_not_taken_for_an_answer() -> None:
    vm = b'<vm id="%s"><name>n</name><placement_policy/><cluster id="c"/></vm>'

    def answer(path: str) -> tuple[int, bytes]:
        return (200, b"<vms/>") if "search" in path else (200, vm % path.rpartition("/")[2].encode())

    ids = [f"id{number}" for number in range(20)]
    with answering(answer) as (_, connection):
        assert list(reread_vms(connection, ids)) == ids


def test_a_cluster_comes_with_its_groups_and_policy() -> None:
    with simulated(STATE) as (_, _, connection):
        whole = read_snapshot(connection)
        for cluster in whole.clusters:
            groups = tuple(group for group in whole.affinity_groups if group.cluster == cluster.id)
            assert reread_cluster(connection, cluster.id, PolicyReader()) == (cluster, groups)
        assert reread_cluster(connection, "00000000-0000-0000-0000-000000000000", PolicyReader()) is None


def test_several_are_asked_for_in_one_request_and_one_by_itself() -> None:
    with simulated(STATE) as (_, server, connection):
        ids = [vm.id for vm in read_snapshot(connection).vms]
        server.disturbances.add(Disturbance(path=f"/vms/{ids[0]}", status=500, times=None))
        assert ids[0] in reread_vms(connection, ids[:30])
        server.disturbances.add(Disturbance(path="search", status=500, times=None))
        assert len(reread_vms(connection, ids[1:2])) == 1
        server.disturbances.clear()
        server.disturbances.add(Disturbance(path="/vms/", status=500, times=None))
        assert len(reread_vms(connection, ids[1:3])) == 2


def test_malformed_xml_is_no_engines() -> None:
    with (
        answering(lambda path: (200, b"<vm><")) as (_, connection),
        pytest.raises(EngineSetupError, match="malformed XML"),
    ):
        reread_vms(connection, ["v"])
