"""Migrations, starts and upgrades as clients see them, and each refusal of a migration."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from ovirtsdk4 import Error, NotFoundError, types
from ovirtsdk4.services import SystemService

from ovirt_simulator.core.backend import MigrationFault
from ovirt_simulator.core.engine import Engine
from tests.builders import CLUSTER
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
    assert (reply.status, [node.tag for node in reply.xml]) == (200, ["job", "status", "vm"])
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


def test_a_host_is_upgraded(engine: Engine, system: SystemService) -> None:
    """What becomes of others: `tests/simulator/core/test_hosts.py`."""
    engine.host_upgrades.offer("host3")
    host = system.hosts_service().host_service("host3")
    host.upgrade_check()
    engine.advance(3)
    assert host.get().update_available
    host.upgrade(reboot=False)
    engine.advance(9)
    assert host.get().status == types.HostStatus.INSTALLING
    engine.advance(60)
    after = host.get()
    assert (after.status, after.update_available) == (types.HostStatus.MAINTENANCE, False)
    assert engines.codes(engine)[-2:] == [840, 842]


# -- Each refusal of a migration reaches the SDK as the real engine's does: those that were not recorded.
NOT_RUNNING = "[Cannot migrate VM. VM is not running.]"
NO_HOSTS = "[There are no hosts to use. Check that the cluster contains at least one host in Up state.]"


class Row(NamedTuple):
    """A case of the table: what is asked for, and what comes back."""

    vm: str
    code: int
    detail: str
    arguments: dict[str, Any] = {}
    prepare: Callable[[Engine], object] = lambda _: None


def to(host_id: str) -> dict[str, Any]:
    return {"host": types.Host(id=host_id)}


def under_way(engine: Engine) -> None:
    engine.vms.migrate("web2", host_id="host1")


def under_way_unlocked(engine: Engine) -> None:
    """As after a restart of a real engine; here a migration always holds its lock."""
    under_way(engine)
    engine._backend.vm_locks.clear()


def refused_by_vdsm(engine: Engine) -> None:
    engine.faults.expect(MigrationFault(refuse=True))


LOCKED = "[Cannot migrate VM. VM web2 is being migrated.]"
UNDER_WAY = "[Cannot migrate VM. VM migration is in progress.]"
PINNED = "[Cannot migrate VM. VM is pinned to Host.]"
NOT_FORCED = "[Cannot migrate VM. VM is non migratable and user did not specify the force-migration flag]"
SILENT = "[Cannot migrate VM because the VM is in NotResponding status.]"
HOST_NOT_UP = "[Cannot migrate VM. Operation can be performed only when Host status is Up.]"
SAME = "[Cannot migrate VM, source and destination is the same.]"
VDSM = "[Cannot migrate VM. VDSM refused the command.]"
WITH_CLUSTER = {"cluster": types.Cluster(id=CLUSTER)}

ROWS = {
    "another command holds the lock": Row("web2", 409, LOCKED, to("host1"), under_way),
    "migrating, and nothing holds the lock": Row("web2", 409, UNDER_WAY, to("host1"), under_way_unlocked),
    "pinned": Row("db1", 409, PINNED),
    "pinned, also with force": Row("db1", 409, PINNED, {"force": True}),
    "user-migratable, not forced": Row("manual", 409, NOT_FORCED),
    "not responding": Row("silent", 409, SILENT),
    "host not up": Row("web2", 409, HOST_NOT_UP, to("host3")),
    "host not up comes before all about the VM": Row("spare", 409, HOST_NOT_UP, to("host3")),
    "present host, with the cluster": Row("stuck", 409, SAME, {**to("host1"), **WITH_CLUSTER}),
    "host of another cluster": Row("web2", 400, NO_HOSTS, to("far")),
    "no other host": Row("remote", 400, NO_HOSTS),
    "VDSM refuses": Row("web2", 400, VDSM, to("host1"), refused_by_vdsm),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_row(engine: Engine, system: SystemService, row: Row) -> None:
    row.prepare(engine)
    with pytest.raises(Error) as caught:
        system.vms_service().vm_service(row.vm).migrate(**row.arguments)
    found = (type(caught.value), caught.value.code, caught.value.fault.reason, caught.value.fault.detail)
    assert found == (Error, row.code, "Operation Failed", row.detail)
    assert f"HTTP response code is {row.code}" in str(caught.value)
    migrating = [vm.id for vm in engine.queries.state.vms.values() if vm.status == "migrating"]
    assert migrating == (["web2"] if row.prepare in (under_way, under_way_unlocked) else [])


def test_a_host_by_unknown_name(api: Api, system: SystemService) -> None:
    """Resolved before there is an action: a plain fault."""
    with pytest.raises(NotFoundError) as caught:
        system.vms_service().vm_service("web2").migrate(host=types.Host(name="nowhere"))
    assert caught.value.fault.detail == "Entity not found: nowhere"
    body = "<action><host><name>nowhere</name></host></action>"
    assert api("vms/web2/migrate", "POST", body).xml.tag == "fault"


def test_a_refused_action_has_the_fault_inside(api: Api) -> None:
    body = '<action><force>true</force><host id="host1"/></action>'
    reply = api("vms/spare/migrate", "POST", body)
    assert (reply.status, [node.tag for node in reply.xml]) == (409, ["fault", "status"])
    assert [node.tag for node in reply.xml.find("fault")] == ["detail", "reason"]
    assert reply.xml.findtext("status") == "failed"


def test_each_refusal_is_logged(system: SystemService) -> None:
    for _ in range(2):
        with pytest.raises(Error):
            system.vms_service().vm_service("spare").migrate(query={"correlation_id": "try"})
    logged = system.events_service().list(search="type=65")
    assert [event.severity for event in logged] == [types.LogSeverity.ERROR] * 2
    assert {event.correlation_id for event in logged} == {"try"}
    assert NOT_RUNNING in logged[0].description
