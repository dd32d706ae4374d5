"""A migration as clients see it: accepted, under way, handed over, done."""

import pytest
from ovirtsdk4 import Error, services, types
from ovirtsdk4.services import SystemService

from ovirt_simulator.core.engine import Engine
from tests.simulator.core import engines
from tests.simulator.http.plain import Api


def test_polled_to_the_end(engine: Engine, system: SystemService) -> None:
    """Source until the hand-over, then the target, still migrating; the target is nowhere before."""
    service = system.vms_service().vm_service("web2")
    assert service.migrate(host=types.Host(id="host1"), query={"correlation_id": "move-1"}) is None
    states = []
    for _ in range(200):
        vm = service.get()
        states.append((vm.status.value, vm.host.id))
        if vm.status == types.VmStatus.UP:
            break
        engine.advance(0.1)
    assert list(dict.fromkeys(states)) == [("migrating", "host2"), ("migrating", "host1"), ("up", "host1")]
    events = system.events_service().list(search="correlation_id=move-1")
    assert [event.code for event in reversed(events)] == [62, 63]
    assert events[0].vm.name == "web2"
    started, done = (event.description for event in reversed(events))
    who = "VM: web2, Source: beta, Destination: alpha"
    assert started == f"Migration started ({who}, User: admin@internal-authz). "
    assert done.startswith(f"Migration completed ({who}, Duration: ")


def test_searches_show_it(system: SystemService) -> None:
    system.vms_service().vm_service("web2").migrate(host=types.Host(name="alpha"))
    assert system.vms_service().list(search="status=migratingfrom")[0].id == "web2"


def test_the_answer_has_a_job(engine: Engine, api: Api, system: SystemService) -> None:
    reply = api("vms/web2/migrate", "POST", '<action><host id="host1"/></action>')
    assert reply.status == 200
    assert [node.tag for node in reply.xml] == ["job", "status", "vm"]
    assert reply.xml.findtext("status") == "complete"
    job = system.jobs_service().job_service(reply.xml.find("job").get("id"))
    assert job.get().status == types.JobStatus.STARTED
    engine.advance(60)
    assert job.get().status == types.JobStatus.FINISHED


def test_force_moves_what_only_its_user_may_move(system: SystemService) -> None:
    service = system.vms_service().vm_service("manual")
    service.migrate(host=types.Host(id="host1"), force=True)
    assert service.get().status == types.VmStatus.MIGRATING


def test_start_and_stop(engine: Engine, system: SystemService) -> None:
    service = system.vms_service().vm_service("spare")
    service.start()
    engine.advance(60)
    assert service.get().status == types.VmStatus.UP
    service.shutdown()
    assert service.get().status == types.VmStatus.POWERING_DOWN
    engine.advance(60)
    assert service.get().status == types.VmStatus.DOWN
    service.start(vm=types.Vm(placement_policy=types.VmPlacementPolicy(hosts=[types.Host(name="beta")])))
    engine.advance(60)
    assert service.get().host.id == "host2"
    service.stop()
    engine.advance(60)
    assert service.get().run_once is None


# -- Hosts are upgraded: drained, installed, and as they were before.


@pytest.fixture
def hosts(system: SystemService) -> services.HostsService:
    return system.hosts_service()


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
