"""A VM's description, high availability and placement policy are changed; what is not named stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ovirtsdk4 import Connection, Error, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request

Policy = types.VmPlacementPolicy


@pytest.fixture
def update(sdk: Connection) -> Callable[..., types.Vm]:
    vms = sdk.system_service().vms_service()

    def update_vm(vm_id: str, **fields: object) -> types.Vm:
        return vms.vm_service(vm_id).update(types.Vm(**fields))

    return update_vm


def test_only_what_is_named_changes(update: Callable[..., types.Vm], engine: Engine) -> None:
    assert update("web1", description="front").description == "front"
    assert update("web1", high_availability=types.HighAvailability(enabled=False)).description == "front"
    web1 = engine.queries.vm("web1")
    assert web1 is not None
    assert (web1.description, web1.ha, web1.migratable, web1.host) == ("front", False, True, "host1")
    event = engine.queries.events()[0]
    assert (event.code, event.vm and event.vm.id) == (35, "web1")


def test_hosts_are_named_by_name_or_id(update: Callable[..., types.Vm]) -> None:
    hosts = [types.Host(name="alpha"), types.Host(id="host2")]
    pinned = update("spare", placement_policy=Policy(affinity=types.VmAffinity.PINNED, hosts=hosts))
    assert pinned.placement_policy.affinity == types.VmAffinity.PINNED
    assert [host.id for host in pinned.placement_policy.hosts] == ["host1", "host2"]
    free = update("spare", placement_policy=Policy(affinity=types.VmAffinity.MIGRATABLE))
    assert free.placement_policy.affinity == types.VmAffinity.MIGRATABLE
    assert [host.id for host in free.placement_policy.hosts] == ["host1", "host2"], "these were not named"
    assert update("spare", placement_policy=Policy(hosts=[])).placement_policy.hosts in (None, [])


@pytest.mark.parametrize(
    ("host", "code", "words"),
    [
        (types.Host(name="nowhere"), 404, "Entity not found: nowhere"),
        (types.Host(id="nowhere"), 400, "Invalid Host Id"),
        (types.Host(name="far"), 400, "not in the same cluster"),
    ],
)
def test_hosts_that_it_cannot_run_on_are_refused(
    update: Callable[..., types.Vm], engine: Engine, host: types.Host, code: int, words: str
) -> None:
    before = engine.queries.vm("spare")
    with pytest.raises(Error, match=words) as caught:
        update("spare", description="x", placement_policy=Policy(hosts=[host]))
    assert caught.value.code == code
    assert engine.queries.vm("spare") == before


def test_an_unknown_vm_and_another_body_are_refused(server: Server) -> None:
    assert request(f"{server.api_url}/vms/nowhere", "PUT", b"<vm/>").status == 404
    assert request(f"{server.api_url}/vms/spare", "PUT", b"<host/>").status == 400
