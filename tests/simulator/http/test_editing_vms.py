"""What a client names of a VM is changed; what it does not name stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ovirtsdk4 import Connection, Error, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request

Policy = types.VmPlacementPolicy
GIB = 1 << 30


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
    assert free.placement_policy.hosts in (None, []), "a placement policy without hosts has none"
    update("spare", placement_policy=Policy(hosts=hosts))
    assert [host.id for host in update("spare", description="x").placement_policy.hosts] == ["host1", "host2"]


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


def test_name_memory_and_cpus_change(update: Callable[..., types.Vm], engine: Engine) -> None:
    topology = types.CpuTopology(sockets=2, cores=3, threads=2)
    changed = update(
        "idle",
        name="busy",
        comment="soon",
        memory=2 * GIB,
        memory_policy=types.MemoryPolicy(guaranteed=GIB, max=8 * GIB, ballooning=False),
        cpu=types.Cpu(topology=topology),
        custom_properties=[types.CustomProperty(name="k", value="v")],
    )
    assert (changed.name, changed.comment, changed.memory) == ("busy", "soon", 2 * GIB)
    policy = changed.memory_policy
    assert (policy.guaranteed, policy.max, policy.ballooning) == (GIB, 8 * GIB, False)
    shown = changed.cpu.topology
    assert (shown.sockets, shown.cores, shown.threads) == (2, 3, 2)
    idle = engine.snapshot().vms[5]
    assert (idle.name, idle.vcpus, idle.memory_mb, idle.guaranteed_mb) == ("busy", 12, 2048, 1024)
    assert update("idle", cpu=types.Cpu(topology=types.CpuTopology(sockets=1))).cpu.topology.cores == 3
    assert engine.snapshot().vms[5].vcpus == 6
    assert engine.snapshot().vms[5].custom_properties == {"k": "v"}


@pytest.mark.parametrize(
    ("vm_id", "fields", "code", "words"),
    [
        ("idle", {"name": "web1"}, 409, "already in use"),
        ("idle", {"memory": 1 << 20}, 400, "Guaranteed cannot exceed"),
        ("idle", {"memory_policy": types.MemoryPolicy(max=1 << 20)}, 409, "exceed maximum memory size"),
        ("idle", {"cpu": types.Cpu(topology=types.CpuTopology(cores=0))}, 400, "not a valid cores"),
    ],
)
def test_changes_that_the_engine_refuses(
    update: Callable[..., types.Vm], engine: Engine, vm_id: str, fields: dict[str, Any], code: int, words: str
) -> None:
    before = engine.queries.vm(vm_id)
    with pytest.raises(Error, match=words) as caught:
        update(vm_id, **fields)
    assert caught.value.code == code
    assert engine.queries.vm(vm_id) == before


def test_memory_is_plugged_into_a_running_vm(update: Callable[..., types.Vm], engine: Engine) -> None:
    host, before = engine.queries.host("host1"), engine.queries.vm("web1")
    assert host is not None
    assert before is not None
    update("web1", memory=(before.memory_mb + 512) << 20)
    after = engine.queries.host("host1")
    assert after is not None
    assert after.free_mb == host.free_mb - 512 - 1
