"""Snapshots of VMs: made, listed, gone back to, cloned and removed."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from tests.simulator.core.engines import codes

ONE_MORE = types.Snapshot(description="before")


def test_while_a_snapshot_is_made_its_vm_stays_where_it_is(sdk: Connection, engine: Engine) -> None:
    service = sdk.system_service().vms_service().vm_service("spare")
    service.start()
    engine.advance(60)
    snapshots = service.snapshots_service()
    made = snapshots.add(ONE_MORE)
    assert (made.snapshot_status.value, made.persist_memorystate) == ("locked", True)
    assert (made.snapshot_type, made.vm.id) == (types.SnapshotType.REGULAR, "spare")
    for refused in (service.migrate, lambda: snapshots.add(ONE_MORE)):
        with pytest.raises(Error, match="The VM is performing an operation on a Snapshot") as caught:
            refused()
        assert caught.value.code == 409
    engine.advance(5)
    assert [one.description for one in snapshots.list()] == ["Active VM", "before"]
    assert snapshots.list()[1].snapshot_status == types.SnapshotStatus.OK
    service.migrate()
    with pytest.raises(Error, match="VM migration is in progress"):
        snapshots.add(ONE_MORE)
    assert [code for code in codes(engine) if code in (45, 65, 68, 62)] == [45, 65, 68, 62]


def test_a_vm_is_what_it_was_again(sdk: Connection, engine: Engine) -> None:
    service = sdk.system_service().vms_service().vm_service("spare")
    snapshots = service.snapshots_service()
    first = snapshots.add(ONE_MORE)
    with pytest.raises(Error, match=r"Cannot run VM\. The VM is performing an operation on a Snapshot"):
        service.start()
    engine.advance(5)
    later = snapshots.add(types.Snapshot(description="later"))
    engine.advance(5)
    service.update(types.Vm(name="other", memory=2 << 30))
    service.nics_service().add(types.Nic(name="eth1"))
    snapshots.snapshot_service(first.id).restore()
    vm = service.get()
    assert (vm.name, vm.memory, service.nics_service().list()) == ("other", 1 << 30, [])
    assert [one.id for one in snapshots.list()][1:] == [first.id]
    assert codes(engine)[-4:] == [46, 71, 94, 95]
    with pytest.raises(NotFoundError):
        snapshots.snapshot_service(later.id).get()
    service.start()
    with pytest.raises(Error, match="At least one of the VMs is not down"):
        snapshots.snapshot_service(first.id).restore()


def test_a_vm_is_made_from_a_snapshot_of_one_that_runs(sdk: Connection, engine: Engine) -> None:
    vms = sdk.system_service().vms_service()
    made = vms.vm_service("db1").snapshots_service().add(ONE_MORE)
    order = types.Vm(
        name="copy", cluster=types.Cluster(name="Default"), snapshots=[types.Snapshot(id=made.id)]
    )
    with pytest.raises(Error, match="operation on a Snapshot"):
        vms.add(order)
    engine.advance(5)
    vm = vms.add(order)
    assert (vm.status, vm.memory, vm.cpu.topology.sockets) == (types.VmStatus.DOWN, 8 << 30, 4)
    disks, nics = sdk.follow_link(vm.disk_attachments), sdk.follow_link(vm.nics)
    assert len(disks) == 2
    assert not {disk.id for disk in disks} & {"disk1", "disk2"}
    assert [(nic.name, nic.vnic_profile.id) for nic in nics] == [("eth0", "vp1")]
    vms.vm_service("db1").snapshots_service().snapshot_service(made.id).remove()
    engine.advance(5)
    assert len(vms.vm_service("db1").snapshots_service().list()) == 1
    assert codes(engine) == [45, 68, 37, 53, 342, 356]


def test_a_disk_has_an_image_for_each_snapshot(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    images = system.disks_service().disk_service("disk1").disk_snapshots_service()
    (active,) = images.list(include_active=True, include_template=True)
    assert (images.list(), active.parent) == ([], None)
    made = system.vms_service().vm_service("db1").snapshots_service().add(ONE_MORE)
    first, second = images.list(include_active=True)
    assert (first.snapshot.id, first.parent, second.parent.id) == (made.id, None, first.id)
    assert [one.id for one in images.list()] == [first.id]
    assert images.snapshot_service(first.id).get().disk.id == "disk1"


def test_what_a_snapshot_holds_stays(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    vm = system.vms_service().vm_service("db1")
    vm.stop()
    engine.advance(30)
    vm.snapshots_service().add(ONE_MORE)
    origin = types.Template(name="t", vm=types.Vm(id="db1"))
    for refused in (vm.remove, lambda: system.templates_service().add(origin)):
        with pytest.raises(Error, match="operation on a Snapshot"):
            refused()
    engine.advance(5)
    with pytest.raises(Error, match="already configured in a snapshot"):
        vm.disk_attachments_service().attachment_service("disk1").remove()
    with pytest.raises(Error, match="with detaching disks, snapshots exist"):
        vm.remove(detach_only=True)
    vm.remove()
    assert engine.queries.vm_snapshots("db1") == ()


def test_what_cannot_be_done_with_snapshots_is_refused(sdk: Connection) -> None:
    snapshots = sdk.system_service().vms_service().vm_service("spare").snapshots_service()
    with pytest.raises(Error, match=r"Snapshot \[description\] required for add"):
        snapshots.add(types.Snapshot())
    active = snapshots.list()[0].id
    with pytest.raises(Error, match="only allowed for regular snapshots"):
        snapshots.snapshot_service(active).remove()
    with pytest.raises(NotFoundError):
        snapshots.snapshot_service("other").remove()
