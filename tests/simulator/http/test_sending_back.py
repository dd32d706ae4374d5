"""Clients send back what they were shown, with a change in it: what they did not change asks for nothing."""

from __future__ import annotations

from typing import Any

import pytest
from ovirtsdk4 import Connection, Error, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        ("clusters", "cluster"),
        ("data_centers", "data_center"),
        ("disks", "disk"),
        ("hosts", "host"),
        ("mac_pools", "mac_pool"),
        ("storage_domains", "storage_domain"),
        ("vms", "vm"),
    ],
)
def test_everything_can_be_sent_back(sdk: Connection, kind: str, one: str) -> None:
    collection: Any = getattr(sdk.system_service(), f"{kind}_service")()
    found = collection.list()
    assert found
    for each in found:
        service = getattr(collection, f"{one}_service")(each.id)
        shown = service.get()
        assert (service.update(shown).id, service.get().name) == (shown.id, shown.name)


def test_a_change_among_it_counts(sdk: Connection) -> None:
    service = sdk.system_service().hosts_service().host_service("host1")
    host = service.get()
    host.comment = "third rack"
    assert service.update(host).comment == "third rack"


def test_a_change_of_what_is_not_known_is_refused(sdk: Connection) -> None:
    service = sdk.system_service().hosts_service().host_service("host1")
    host = service.get()
    host.os = types.OperatingSystem(type="other")
    with pytest.raises(Error, match="the element host/os"):
        service.update(host)


def test_what_has_changed_meanwhile_asks_for_nothing(sdk: Connection, engine: Engine) -> None:
    service = sdk.system_service().hosts_service().host_service("host1")
    host = service.get()
    engine.hosts.fail("host1")
    engine.advance(60)
    assert service.get().status != host.status
    assert service.update(host).id == "host1"


def test_what_is_new_has_nothing_to_be_compared_with(server: Server) -> None:
    reply = request(f"{server.api_url}/hosts", "POST", "<host><name>x</name><os><type>x</type></os></host>")
    assert reply.status == 501


def test_the_default_pool_stays_the_default(sdk: Connection) -> None:
    pools = sdk.system_service().mac_pools_service()
    (default,) = pools.list()
    ranges = [types.Range(from_="02:00:00:00:00:00", to="02:00:00:01:00:00")]
    other = pools.add(types.MacPool(name="other", default_pool=False, ranges=ranges))
    for pool, given in ((default, False), (other, True)):
        service = pools.mac_pool_service(pool.id)
        with pytest.raises(Error, match="Changing default MAC Pool is not supported") as refused:
            service.update(types.MacPool(default_pool=given))
        assert refused.value.code == 400
        assert service.update(types.MacPool(default_pool=not given)).default_pool is not given
    with pytest.raises(Error, match="Setting default MAC Pool is not supported"):
        pools.add(types.MacPool(name="third", default_pool=True, ranges=ranges))


@pytest.mark.parametrize(
    ("address", "body", "refused"),
    [
        ("roles", "<role><mutable>true</mutable></role>", "role/mutable"),
        (
            "schedulingpolicies",
            "<scheduling_policy><locked>false</locked></scheduling_policy>",
            "scheduling_policy/locked",
        ),
    ],
)
def test_false_asks_for_a_change_where_the_value_is_true(
    server: Server, address: str, body: str, refused: str
) -> None:
    listed = request(f"{server.api_url}/{address}").xml
    reply = request(f"{server.api_url}/{address}/{listed[0].get('id')}", "PUT", body)
    assert (reply.status, f"the element {refused}" in reply.body.decode()) == (501, True)
