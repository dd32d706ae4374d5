"""Hosts are upgraded: drained, installed, and as they were before."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, services, types

from ovirt_simulator.core.engine import Engine
from tests.simulator.core import engines


@pytest.fixture
def hosts(sdk: Connection) -> services.HostsService:
    return sdk.system_service().hosts_service()


def found(hosts: services.HostsService, engine: Engine, host_id: str) -> services.HostService:
    """Give a host that is known to have updates."""
    engine.host_upgrades.offer(host_id)
    service = hosts.host_service(host_id)
    service.upgrade_check()
    engine.advance(3)
    assert service.get().update_available
    return service


def test_a_host_without_updates_is_not_upgraded(hosts: services.HostsService, engine: Engine) -> None:
    host = hosts.host_service("host1")
    host.upgrade_check()
    engine.advance(3)
    assert "'no updates found.'" in engine.queries.events()[0].description
    with pytest.raises(Error, match="no available updates") as caught:
        host.upgrade()
    assert caught.value.code == 409


def test_vms_move_away_and_the_host_comes_back(hosts: services.HostsService, engine: Engine) -> None:
    host = found(hosts, engine, "far")
    assert "found updates for packages" in engine.queries.events()[0].description
    engine.vms.stop("remote")
    engine.advance(2)
    before = engines.codes(engine)
    host.upgrade()
    engine.advance(9)
    assert host.get().status == types.HostStatus.INSTALLING
    engine.advance(60)
    after = host.get()
    assert (after.status, after.update_available) == (types.HostStatus.UP, False)
    codes = engines.codes(engine)[len(before) :]
    assert [code for code in codes if code != 61] == [840, 15, 888, 197, 13]


def test_a_host_in_maintenance_stays_there(hosts: services.HostsService, engine: Engine) -> None:
    host = found(hosts, engine, "host3")
    before = engines.codes(engine)
    host.upgrade(reboot=False)
    engine.advance(60)
    assert host.get().status == types.HostStatus.MAINTENANCE
    assert engines.codes(engine)[len(before) :] == [840, 842]


def test_what_cannot_move_holds_an_upgrade_back(hosts: services.HostsService, engine: Engine) -> None:
    host = found(hosts, engine, "host2")
    host.upgrade()
    engine.advance(60)
    assert host.get().status == types.HostStatus.UP
    assert engines.codes(engine)[-2:] == [840, 841]
