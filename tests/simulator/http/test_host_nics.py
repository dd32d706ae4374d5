"""Each host has one NIC, which the management network of its cluster is on."""

from __future__ import annotations

from contextlib import closing

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests import builders
from tests.simulator.core.engines import START
from tests.simulator.http.plain import request


def test_a_host_has_one_nic_with_the_management_network(sdk: Connection) -> None:
    hosts = sdk.system_service().hosts_service()
    found = [
        (host, nic) for host in hosts.list() for nic in hosts.host_service(host.id).nics_service().list()
    ]
    assert [host.name for host, _ in found] == ["alpha", "beta", "far", "gamma"]
    for host, nic in found:
        assert (nic.name, nic.status, nic.host.id) == ("eth0", types.NicStatus.UP, host.id)
        assert (nic.network.id, nic.bridged, nic.custom_configuration) == ("net1", True, False)
        assert (nic.ip.address, nic.ip.version) == (host.address, types.IpVersion.V4)
        assert sdk.follow_link(nic.network).name == "ovirtmgmt"
    assert len({nic.id for _, nic in found}) == len({nic.mac.address for _, nic in found}) == 4


def test_a_nic_by_itself(sdk: Connection) -> None:
    nics = sdk.system_service().hosts_service().host_service("host1").nics_service()
    (listed,) = nics.list()
    service = nics.nic_service(listed.id)
    assert (service.get().name, service.get().mac.address) == ("eth0", listed.mac.address)
    for parts in (service.network_attachments_service(), service.network_labels_service()):
        assert parts.list() == []
    assert service.link_layer_discovery_protocol_elements_service().list() == []
    figures = service.statistics_service().list()
    assert {one.name: one.values[0].datum for one in figures}["data.total.rx"] == 0
    one = service.statistics_service().statistic_service(figures[0].id).get()
    assert (one.name, one.host_nic.id) == (figures[0].name, listed.id)
    (host,) = sdk.system_service().hosts_service().list(search="alpha", follow="nics.network")
    assert [nic.network.name for nic in host.nics] == ["ovirtmgmt"]
    with pytest.raises(NotFoundError):
        nics.nic_service("other").get()
    with pytest.raises(NotFoundError):
        sdk.system_service().hosts_service().host_service("none").nics_service().list()


def test_nothing_can_be_done_with_a_nic(sdk: Connection) -> None:
    host = sdk.system_service().hosts_service().host_service("host1")
    (nic,) = host.nics_service().list()
    with pytest.raises(Error):
        host.nics_service().nic_service(nic.id).update_virtual_functions_configuration()
    with pytest.raises(Error):
        host.setup_networks(modified_network_attachments=[types.NetworkAttachment(host_nic=nic)])


def test_a_nic_without_a_network() -> None:
    state = builders.snapshot(builders.cluster(), builders.host("host1"))
    with closing(serve(Engine.from_snapshot(state, clock=START))) as server:
        (nic,) = request(f"{server.api_url}/hosts/host1/nics").xml
    assert (nic.findtext("bridged"), nic.findtext("status"), nic.find("network")) == ("false", "up", None)


def test_a_host_that_is_reached_by_its_name_shows_no_address(sdk: Connection, engine: Engine) -> None:
    host = types.Host(
        name="new", address="new.example", root_password="x", cluster=types.Cluster(id="cluster2")
    )
    added = sdk.system_service().hosts_service().add(host)
    (nic,) = sdk.system_service().hosts_service().host_service(added.id).nics_service().list()
    assert (nic.ip, nic.ipv6, nic.network.id) == (None, None, "net1")
