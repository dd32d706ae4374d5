"""Hosts are added and installed, changed, and given fence agents."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.host_installation import HostEdit, Installing
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import Server
from tests.simulator.core.engines import codes
from tests.simulator.http.plain import request

KEY = types.Ssh(authentication_method=types.SshAuthenticationMethod.PUBLICKEY)
NEW = types.Host(name="new", address="node9", root_password="secret")
AGENT = types.Agent(
    address="10.0.0.9",
    type="ipmilan",
    username="fence",
    password="secret",
    order=1,
    options=[types.Option(name="lanplus", value="1")],
)


def test_a_new_host_is_up_after_a_while_and_takes_vms(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    hosts = system.hosts_service()
    added = hosts.add(NEW)
    assert (added.status.value, added.address, added.cluster.id) == ("installing", "node9", "cluster1")
    assert codes(engine) == [9000, 42, 560]
    engine.advance(11)
    assert hosts.host_service(added.id).get().status == types.HostStatus.REBOOT
    engine.advance(30)
    host = hosts.list(search="name=new")[0]
    # Its cluster promises half as much again.
    assert (host.status.value, host.memory, host.max_scheduling_memory) == ("up", 65536 << 20, 98304 << 20)
    assert codes(engine) == [9000, 42, 560, 504, 13]
    vm = system.vms_service().vm_service("spare")
    vm.start(vm=types.Vm(placement_policy=types.VmPlacementPolicy(hosts=[types.Host(id=added.id)])))
    engine.advance(30)
    assert vm.get().host.id == added.id
    assert hosts.host_service(added.id).get().max_scheduling_memory == (98304 - 1024 - 64 - 2 - 8 - 8) << 20


def test_a_host_that_shall_not_be_active_is_in_maintenance(sdk: Connection, engine: Engine) -> None:
    added = (
        sdk.system_service()
        .hosts_service()
        .add(
            types.Host(name="new", address="node9", ssh=KEY, cluster=types.Cluster(id="cluster2")),
            activate=False,
        )
    )
    engine.advance(60)
    host = engine.queries.host(added.id)
    assert host is not None
    assert (host.status, host.cluster) == ("maintenance", "cluster2")


def test_a_host_of_the_state_file_goes_on_installing(engine: Engine) -> None:
    installing = Installing(authenticated=True)
    host = engine.installation.add("cluster1", HostEdit(name="new", address="node9"), installing)
    clock = datetime(2026, 3, 1, tzinfo=UTC)
    resumed = Engine.from_snapshot(engine.snapshot(), clock=clock, settings=PROMPT)
    resumed.advance(60)
    present = resumed.queries.host(host.id)
    assert present is not None
    assert (present.status, present.free_mb) == ("up", 98304)


@pytest.mark.parametrize(
    ("host", "status", "words"),
    [
        (types.Host(name="new"), 400, r"Host \[address\] required for add"),
        (types.Host(name="ALPHA", address="x", root_password="x"), 409, "Host name is already in use"),
        (types.Host(name="new", address="10.0.0.0", root_password="x"), 409, "with the same address"),
        (types.Host(name="new", address="x"), 400, "install Host with empty password"),
        (types.Host(name="new", address="x", cluster=types.Cluster(name="none")), 404, "Cluster: name=none"),
        (
            types.Host(name="new", address="x", power_management=types.PowerManagement(enabled=True)),
            400,
            "no Agent type selected",
        ),
    ],
)
def test_what_is_no_host_is_refused(sdk: Connection, host: types.Host, status: int, words: str) -> None:
    with pytest.raises(Error, match=words) as caught:
        sdk.system_service().hosts_service().add(host)
    assert caught.value.code == status


def test_hosts_are_added_by_who_may(server: Server) -> None:
    body = b"<host><name>n</name><address>a</address><root_password>p</root_password></host>"
    assert request(f"{server.api_url}/hosts", "POST", body, user="reader@internal:password").status == 403


def test_a_host_is_changed_and_installed_once_more(sdk: Connection, engine: Engine) -> None:
    service = sdk.system_service().hosts_service().host_service("host3")
    plain = types.PowerManagement(kdump_detection=False)
    changed = service.update(types.Host(name="third", comment="rack 1", power_management=plain))
    assert (changed.name, changed.comment, changed.reinstallation_required) == ("third", "rack 1", True)
    with pytest.raises(Error, match="Host Address can not be modified"):
        service.update(types.Host(address="elsewhere"))
    with pytest.raises(Error, match="empty password"):
        service.install()
    service.install(ssh=KEY)
    assert service.get().status == types.HostStatus.INSTALLING
    engine.advance(60)
    host = service.get()
    assert (host.status, host.reinstallation_required) == (types.HostStatus.MAINTENANCE, False)
    assert codes(engine) == [9000, 43, 9000, 43, 560, 504]
    with pytest.raises(Error, match="move Host to Maintenance mode first"):
        sdk.system_service().hosts_service().host_service("host1").install(ssh=KEY)


def test_fence_agents_come_and_go_with_their_host(sdk: Connection, engine: Engine) -> None:
    service = sdk.system_service().hosts_service().host_service("host3")
    agents = service.fence_agents_service()
    enabled = types.Host(power_management=types.PowerManagement(enabled=True))
    with pytest.raises(Error, match="no Agent type selected"):
        service.update(enabled)
    added = agents.add(AGENT)
    assert (added.username, added.password, added.host.id) == ("fence", None, "host3")
    assert service.update(enabled).power_management.enabled
    changed = agents.agent_service(added.id).update(types.Agent(order=7))
    assert (changed.order, changed.options[0].name, changed.type) == (7, "lanplus", "ipmilan")
    assert [agent.id for agent in agents.list()] == [added.id]
    for wrong, words in (
        (types.Agent(address="x"), "order, type, username, password"),
        (types.Agent(address="x", order=1, type="magic", username="u", password="p"), "not supported"),
        (types.Agent(address="x", order=1, type="apc", username="u", password="p", port=0), "1 and 65535"),
    ):
        with pytest.raises(Error, match=words):
            agents.add(wrong)
    agents.agent_service(added.id).remove()
    with pytest.raises(NotFoundError):
        agents.agent_service(added.id).get()
    agents.add(AGENT)
    service.remove()
    assert engine.queries.fence_agents() == ()
