"""Disks and network interfaces are attached, changed and detached by clients; the events refer to the VM."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_placement.model import Disk
from ovirt_simulator.core.engine import Engine
from tests import builders as build


def told(engine: Engine) -> tuple[int, str | None]:
    event = engine.queries.events()[0]
    return event.code, event.vm and event.vm.id


def test_nics_come_change_and_go(sdk: Connection, engine: Engine) -> None:
    nics = sdk.system_service().vms_service().vm_service("web1").nics_service()
    nic = nics.add(types.Nic(name="nic1", vnic_profile=types.VnicProfile(id="vp1")))
    assert (nic.vnic_profile.id, told(engine)) == ("vp1", (932, "web1"))
    assert nics.nic_service(nic.id).update(types.Nic(name="renamed")).vnic_profile.id == "vp1"
    assert told(engine)[0] == 932, "what is read past changes nothing"
    assert nics.nic_service(nic.id).update(types.Nic(vnic_profile=types.VnicProfile())).vnic_profile is None
    assert told(engine) == (934, "web1")
    nics.nic_service(nic.id).remove()
    assert (nics.list(), told(engine)) == ([], (930, "web1"))
    with pytest.raises(NotFoundError):
        nics.add(types.Nic(name="nic1", vnic_profile=types.VnicProfile(id="nowhere")))


def test_disks_come_change_and_go(sdk: Connection, engine: Engine) -> None:
    disks = sdk.system_service().vms_service().vm_service("web1").disk_attachments_service()
    disk = types.Disk(id="d", disk_profile=types.DiskProfile(id="fast"))
    added = disks.add(types.DiskAttachment(disk=disk, bootable=True))
    assert (added.id, told(engine)) == ("d", (2016, "web1"))
    disks.attachment_service("d").update(types.DiskAttachment(bootable=False))
    assert told(engine) == (88, "web1")
    vm = engine.queries.vm("web1")
    assert vm is not None
    assert vm.disks == (Disk(id="d", bootable=False, profile="fast"),)
    disks.attachment_service("d").remove()
    assert (disks.list(), told(engine)) == ([], (2018, "web1"))
    with pytest.raises(Error, match=r"disk\.id"):
        disks.add(types.DiskAttachment(bootable=True))


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
    assert (vm.host, vm.status, vm.owner, told(engine)) == (None, "down", "alice", (34, "new"))
