"""Disks and network interfaces are attached, changed and detached by clients; the events refer to the VM."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_placement.model import Disk
from ovirt_simulator.core.engine import Engine
from tests import builders as build


def reported(engine: Engine) -> tuple[int, str | None]:
    event = engine.queries.events()[0]
    return event.code, event.vm and event.vm.id


def test_nics_come_change_and_go(sdk: Connection, engine: Engine) -> None:
    nics = sdk.system_service().vms_service().vm_service("web1").nics_service()
    nic = nics.add(types.Nic(name="nic1", vnic_profile=types.VnicProfile(id="vp1")))
    assert (nic.vnic_profile.id, reported(engine)) == ("vp1", (932, "web1"))
    renamed = nics.nic_service(nic.id).update(types.Nic(name="renamed"))
    assert (renamed.name, renamed.vnic_profile.id) == ("renamed", "vp1")
    with pytest.raises(Error, match="name is already in use"):
        nics.add(types.Nic(name="renamed"))
    assert nics.nic_service(nic.id).update(types.Nic(vnic_profile=types.VnicProfile())).vnic_profile is None
    assert reported(engine) == (934, "web1")
    nics.nic_service(nic.id).deactivate()
    nics.nic_service(nic.id).remove()
    assert (nics.list(), reported(engine)) == ([], (930, "web1"))
    with pytest.raises(NotFoundError):
        nics.add(types.Nic(name="nic1", vnic_profile=types.VnicProfile(id="nowhere")))


def test_nics_have_the_addresses_that_they_are_given(sdk: Connection) -> None:
    vms = sdk.system_service().vms_service()
    nics = vms.vm_service("idle").nics_service()
    nic = nics.add(types.Nic(name="own", mac=types.Mac(address="56:6F:00:00:00:01")))
    assert nic.mac.address == "56:6F:00:00:00:01"
    service = nics.nic_service(nic.id)
    assert service.update(service.get()).mac.address == nic.mac.address
    assert (
        service.update(types.Nic(mac=types.Mac(address="02:00:00:00:00:02"))).mac.address
        == "02:00:00:00:00:02"
    )
    assert [vm.id for vm in vms.list(search="vnic.mac=02:00:00:00:00:02")] == ["idle"]
    for address, refusal, code in (
        ("02:00:00:00:00:02", "already in use by VM or snapshot: idle", 409),
        ("03:00:00:00:00:02", "Multi-cast", 400),
        ("02:00", "must be in format", 400),
    ):
        with pytest.raises(Error, match=refusal) as caught:
            nics.add(types.Nic(name="other", mac=types.Mac(address=address)))
        assert caught.value.code == code
    assert [one.name for one in nics.list()] == ["own"]


def test_disks_come_change_and_go(sdk: Connection, engine: Engine) -> None:
    disks = sdk.system_service().vms_service().vm_service("web1").disk_attachments_service()
    one = types.Disk(name="d", format=types.DiskFormat.COW, provisioned_size=2**30)
    identity = sdk.system_service().disks_service().add(one).id
    disk = types.Disk(id=identity, disk_profile=types.DiskProfile(id="fast"))
    added = disks.add(types.DiskAttachment(disk=disk, bootable=True))
    assert (added.id, reported(engine)) == (identity, (2016, "web1"))
    disks.attachment_service(identity).update(types.DiskAttachment(bootable=False))
    assert reported(engine) == (88, "web1")
    assert engine.snapshot().vm_by_id["web1"].disks == (Disk(id=identity, bootable=False, profile="fast"),)
    disks.attachment_service(identity).remove()
    assert (disks.list(), reported(engine)) == ([], (2018, "web1"))
    with pytest.raises(Error, match=r"disk\.id"):
        disks.add(types.DiskAttachment(bootable=True))
    with pytest.raises(NotFoundError, match="Entity not found: nobodys"):
        disks.add(types.DiskAttachment(disk=types.Disk(id="nobodys")))


def test_a_network_gets_another_vnic_profile(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    profiles = system.networks_service().network_service("net2").vnic_profiles_service()
    added = profiles.add(types.VnicProfile(name="bulk"))
    assert [profile.id for profile in profiles.list()] == [added.id]
    assert engine.queries.events()[0].code == 1122
    assert engine.snapshot().vnic_profiles[-1].network == "net2"


def test_a_vm_is_created(engine: Engine) -> None:
    engine.vms.add(build.vm("new", "host1", owner="alice", disks=(Disk(id="d", bootable=True),)))
    vm = engine.queries.vm("new")
    assert vm is not None
    assert (vm.host, vm.status, vm.owner, reported(engine)) == (None, "down", "alice", (34, "new"))
