"""A migration as clients see it: accepted, under way, handed over, done."""

from __future__ import annotations

from ovirtsdk4 import Connection, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request


def test_polled_to_the_end(engine: Engine, sdk: Connection) -> None:
    """Source until the hand-over, then the target, still migrating; the target is nowhere before."""
    system = sdk.system_service()
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
    assert "Source: beta, Destination: alpha" in events[1].description


def test_searches_show_it(sdk: Connection) -> None:
    system = sdk.system_service()
    system.vms_service().vm_service("web2").migrate(host=types.Host(name="alpha"))
    assert system.vms_service().list(search="status=migratingfrom")[0].id == "web2"


def test_the_answer_has_a_job(engine: Engine, server: Server, sdk: Connection) -> None:
    reply = request(f"{server.api_url}/vms/web2/migrate", "POST", '<action><host id="host1"/></action>')
    assert reply.status == 200
    assert [node.tag for node in reply.xml] == ["job", "status", "vm"]
    assert reply.xml.findtext("status") == "complete"
    job = sdk.system_service().jobs_service().job_service(reply.xml.find("job").get("id"))
    assert job.get().status == types.JobStatus.STARTED
    engine.advance(60)
    assert job.get().status == types.JobStatus.FINISHED


def test_force_moves_what_only_its_user_may_move(sdk: Connection) -> None:
    service = sdk.system_service().vms_service().vm_service("manual")
    service.migrate(host=types.Host(id="host1"), force=True)
    assert service.get().status == types.VmStatus.MIGRATING


def test_start_and_stop(engine: Engine, sdk: Connection) -> None:
    service = sdk.system_service().vms_service().vm_service("spare")
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
