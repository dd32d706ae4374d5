"""VM pools come with their VMs, of which the engine keeps some running, and go with them."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from tests.simulator.core.engines import codes

POOL = types.VmPool(
    name="desk",
    cluster=types.Cluster(name="Default"),
    template=types.Template(name="golden"),
    size=3,
    prestarted_vms=2,
)


@pytest.fixture
def pool(sdk: Connection) -> types.VmPool:
    system = sdk.system_service()
    system.templates_service().add(types.Template(name="golden", vm=types.Vm(id="idle")))
    return system.vm_pools_service().add(POOL)


def test_some_vms_of_a_pool_run_after_a_while(sdk: Connection, engine: Engine, pool: types.VmPool) -> None:
    system = sdk.system_service()
    vms = system.vms_service().list(search="pool=desk sortby name asc")
    assert [vm.name for vm in vms] == ["desk-1", "desk-2", "desk-3"]
    assert {vm.vm_pool.id for vm in vms} == {pool.id}
    engine.advance(400)
    assert [vm.status.value for vm in system.vms_service().list(search="pool=desk")].count("up") == 2
    service = system.vm_pools_service().pool_service(pool.id)
    assert service.update(types.VmPool(size=4, prestarted_vms=1)).size == 4
    assert codes(engine).count(302) == codes(engine).count(314) == 1
    with pytest.raises(Error, match="VM is attached to a VM Pool"):
        system.vms_service().vm_service(vms[2].id).remove()
    service.remove()
    engine.advance(60)
    assert system.vms_service().list(search="name=desk*") == []
    with pytest.raises(NotFoundError):
        service.get()
    assert codes(engine)[-1] == 304


def test_a_vm_leaves_its_pool(sdk: Connection, engine: Engine, pool: types.VmPool) -> None:
    system = sdk.system_service()
    for vm in system.vms_service().list(search="pool=desk"):
        system.vms_service().vm_service(vm.id).detach()
    assert system.vm_pools_service().list() == []
    with pytest.raises(Error, match="VM is not attached to the VM-Pool"):
        system.vms_service().vm_service(vm.id).detach()
    system.vms_service().vm_service(vm.id).remove()
    assert codes(engine)[-4:] == [308, 308, 308, 113]


def test_what_is_no_pool_is_refused(sdk: Connection, pool: types.VmPool) -> None:
    pools = sdk.system_service().vm_pools_service()
    fields = {"cluster": POOL.cluster, "template": POOL.template}
    for wrong, words in (
        (types.VmPool(name="x"), r"template.id\|name, cluster.id\|name"),
        (types.VmPool(name="desk", **fields), "VM-Pool name is already in use"),
        (types.VmPool(name="x", size=0, **fields), "Pool with 0 VMs"),
        (types.VmPool(name="x", size=1, prestarted_vms=2, **fields), "Prestarted VMs cannot exceed"),
        (
            types.VmPool(name="x", cluster=POOL.cluster, template=types.Template(name="Blank")),
            "non-blank Template",
        ),
    ):
        with pytest.raises(Error, match=words):
            pools.add(wrong)
    with pytest.raises(Error, match="Cannot decrease VMs"):
        pools.pool_service(pool.id).update(types.VmPool(size=1))
    assert [one.name for one in pools.list(search="name=D* and type=automatic")] == ["desk"]
    assert pools.list(search=f"assigned_vm_count={pool.size}") != []
    assert pools.list(search="name!=desk") == []
