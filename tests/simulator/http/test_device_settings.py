"""What a VM sees of its NICs and disks: kept, shown, and refused as the engine refuses it."""

from __future__ import annotations

import pytest
from ovirtsdk4 import Connection, Error, services, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.http.plain import request


@pytest.fixture
def vms(sdk: Connection) -> services.VmsService:
    return sdk.system_service().vms_service()


@pytest.fixture
def disks(sdk: Connection) -> services.DisksService:
    return sdk.system_service().disks_service()


def raw_disk(disks: services.DisksService, *, shareable: bool = True) -> types.Disk:
    return disks.add(
        types.Disk(
            name="quorum",
            provisioned_size=1 << 30,
            format=types.DiskFormat.RAW,
            shareable=shareable,
            storage_domains=[types.StorageDomain(name="data")],
        )
    )


def attached(vms: services.VmsService, vm: str, disk: str) -> types.DiskAttachment:
    return vms.vm_service(vm).disk_attachments_service().attachment_service(disk).get()


def test_a_nic_is_added_as_it_is_described(vms: services.VmsService, engine: Engine) -> None:
    nics = vms.vm_service("idle").nics_service()
    added = nics.add(types.Nic(name="eth0", interface=types.NicInterface.E1000, linked=False, plugged=False))
    shown = nics.nic_service(added.id).get()
    assert (shown.interface, shown.linked, shown.plugged) == (types.NicInterface.E1000, False, False)
    assert "Interface eth0 (e1000) was added to VM idle." in engine.queries.events()[0].description


def test_without_a_word_it_is_plugged_and_linked(vms: services.VmsService) -> None:
    nic = vms.vm_service("idle").nics_service().add(types.Nic(name="eth0"))
    assert (nic.interface, nic.linked, nic.plugged) == (types.NicInterface.VIRTIO, True, True)


def test_its_cable_is_taken_out_while_the_vm_runs(vms: services.VmsService, engine: Engine) -> None:
    nic = vms.vm_service("db1").nics_service().nic_service("nic1")
    nic.update(types.Nic(linked=False))
    assert (nic.get().linked, nic.get().plugged) == (False, True)
    assert "Link State is DOWN." in engine.queries.events()[0].description
    nic.update(types.Nic(linked=True))
    assert nic.get().linked is True


def test_it_is_unplugged_to_be_changed(vms: services.VmsService, engine: Engine) -> None:
    nic = vms.vm_service("db1").nics_service().nic_service("nic1")
    for change in (
        types.Nic(interface=types.NicInterface.E1000),
        types.Nic(mac=types.Mac(address="56:6f:00:00:00:01")),
    ):
        with pytest.raises(Error, match="Please un-plug the interface") as caught:
            nic.update(change)
        assert caught.value.code == 409
    nic.deactivate()
    assert [event.code for event in engine.queries.events()[:2]] == [934, 1014]
    nic.update(types.Nic(interface=types.NicInterface.E1000))
    nic.activate()
    assert [event.code for event in engine.queries.events()[:2]] == [934, 1012]
    assert (nic.get().plugged, nic.get().interface) == (True, types.NicInterface.E1000)


def test_it_is_unplugged_to_be_removed(vms: services.VmsService) -> None:
    nic = vms.vm_service("db1").nics_service().nic_service("nic1")
    with pytest.raises(Error, match="The VM Network Interface is plugged to a running VM") as caught:
        nic.remove()
    assert caught.value.code == 409
    nic.deactivate()
    nic.remove()
    assert vms.vm_service("db1").nics_service().list() == []


@pytest.mark.parametrize(
    ("vm", "inside", "status", "text"),
    [
        ("idle", "<interface>carrier_pigeon</interface>", 400, "is not a member of NicInterface"),
        ("idle", "<interface>e1000e</interface>", 400, "not compatible with the selected operating system"),
        ("idle", "<interface>rtl8139_virtio</interface>", 400, "not compatible with the selected operating"),
        ("idle", "<interface>pci_passthrough</interface>", 409, "network interface type doesn't match the"),
        ("stuck", "", 409, "Cannot add a Network Interface when VM is not Down, Up or Image-Locked."),
        ("Engine", "", 400, "Hosted Engine VM cannot have network interface with empty profile."),
    ],
)
def test_a_nic_that_the_vm_cannot_have(server: Server, vm: str, inside: str, status: int, text: str) -> None:
    reply = request(f"{server.api_url}/vms/{vm}/nics", "POST", f"<nic><name>new</name>{inside}</nic>")
    assert reply.status == status
    assert text in (reply.xml.findtext("detail") or "")


def test_a_network_that_the_cluster_has_not(sdk: Connection, vms: services.VmsService) -> None:
    system = sdk.system_service()
    profile = system.vnic_profiles_service().add(
        types.VnicProfile(name="storage", network=types.Network(id="net2"))
    )
    system.clusters_service().cluster_service("cluster1").networks_service().network_service("net2").remove()
    wanted = types.Nic(name="eth1", vnic_profile=types.VnicProfile(id=profile.id))
    with pytest.raises(Error, match="The specified Logical Network doesn't exist") as caught:
        vms.vm_service("idle").nics_service().add(wanted)
    assert caught.value.code == 409
    vms.vm_service("remote").nics_service().add(wanted)


def test_how_a_vm_sees_a_disk(vms: services.VmsService, disks: services.DisksService) -> None:
    disk = raw_disk(disks, shareable=False)
    service = vms.vm_service("idle").disk_attachments_service()
    service.add(
        types.DiskAttachment(
            disk=types.Disk(id=disk.id),
            bootable=False,
            active=True,
            interface=types.DiskInterface.VIRTIO,
            read_only=True,
            pass_discard=True,
            uses_scsi_reservation=True,
        )
    )
    shown = attached(vms, "idle", disk.id)
    assert (shown.read_only, shown.pass_discard, shown.uses_scsi_reservation) == (True, True, True)
    service.attachment_service(disk.id).update(types.DiskAttachment(read_only=False, pass_discard=False))
    shown = attached(vms, "idle", disk.id)
    assert (shown.read_only, shown.pass_discard, shown.interface) == (
        False,
        False,
        types.DiskInterface.VIRTIO,
    )


@pytest.mark.parametrize(
    ("vm", "inside", "status", "text"),
    [
        (
            "idle",
            "<read_only>true</read_only><interface>ide</interface>",
            400,
            "IDE disks can't be read-only.",
        ),
        (
            "idle",
            "<read_only>true</read_only><interface>sata</interface>",
            400,
            "SATA disks can't be read-only",
        ),
        (
            "idle",
            "<pass_discard>true</pass_discard><interface>spapr_vscsi</interface>",
            400,
            "Enable discard for quorum is supported only by VirtIO-SCSI and IDE disk interfaces.",
        ),
        ("idle", "<interface>tape</interface>", 400, "is not a member of DiskInterface"),
    ],
)
def test_a_way_that_no_vm_sees_a_disk(
    server: Server, disks: services.DisksService, vm: str, inside: str, status: int, text: str
) -> None:
    body = f'<disk_attachment><disk id="{raw_disk(disks).id}"/>{inside}</disk_attachment>'
    reply = request(f"{server.api_url}/vms/{vm}/diskattachments", "POST", body)
    assert reply.status == status
    assert text in (reply.xml.findtext("detail") or "")


@pytest.mark.parametrize(
    "change",
    [
        types.DiskAttachment(read_only=True),
        types.DiskAttachment(interface=types.DiskInterface.VIRTIO),
        types.DiskAttachment(bootable=False),
    ],
)
def test_a_running_vm_keeps_seeing_a_disk_as_it_does(
    vms: services.VmsService, change: types.DiskAttachment
) -> None:
    attachment = vms.vm_service("db1").disk_attachments_service().attachment_service("disk1")
    with pytest.raises(Error, match="At least one of the VMs is not down") as caught:
        attachment.update(change)
    assert caught.value.code == 409
    attachment.update(types.DiskAttachment(active=False))
    attachment.update(change)


def test_a_read_only_disk_does_not_grow(vms: services.VmsService, disks: services.DisksService) -> None:
    disk = raw_disk(disks, shareable=False)
    vms.vm_service("idle").disk_attachments_service().add(
        types.DiskAttachment(
            disk=types.Disk(id=disk.id), read_only=True, interface=types.DiskInterface.VIRTIO
        )
    )
    with pytest.raises(Error, match="Read-only disk cannot be resized") as caught:
        disks.disk_service(disk.id).update(types.Disk(provisioned_size=2 << 30))
    assert caught.value.code == 409


def test_a_shared_disk_has_several_vms(vms: services.VmsService, disks: services.DisksService) -> None:
    """Each sees it in its own way; it is not part of their snapshots, and outlives them."""
    disk = raw_disk(disks)
    for vm, read_only in (("idle", False), ("spare", True)):
        vms.vm_service(vm).disk_attachments_service().add(
            types.DiskAttachment(
                disk=types.Disk(id=disk.id), read_only=read_only, interface=types.DiskInterface.VIRTIO
            )
        )
    assert attached(vms, "idle", disk.id).read_only is False
    assert attached(vms, "spare", disk.id).read_only is True
    with pytest.raises(Error, match="Disk is shared between VMs and cannot be made unshareable") as caught:
        disks.disk_service(disk.id).update(types.Disk(shareable=False))
    assert caught.value.code == 409
    vms.vm_service("idle").remove()
    assert disks.disk_service(disk.id).get().shareable is True
    disks.disk_service(disk.id).update(types.Disk(shareable=False))


def test_a_shared_disk_is_in_no_snapshot(
    vms: services.VmsService, disks: services.DisksService, engine: Engine
) -> None:
    disk = raw_disk(disks)
    idle = vms.vm_service("idle")
    idle.disk_attachments_service().add(types.DiskAttachment(disk=types.Disk(id=disk.id)))
    made = idle.snapshots_service().add(types.Snapshot(description="before"))
    engine.advance(10)
    snapshot = idle.snapshots_service().snapshot_service(made.id)
    assert snapshot.disks_service().list() == []
    snapshot.restore()
    engine.advance(10)
    assert [each.disk.id for each in idle.disk_attachments_service().list()] == [disk.id]


def test_a_disk_that_cannot_be_shared(
    vms: services.VmsService, disks: services.DisksService, engine: Engine
) -> None:
    cow = types.Disk(name="cow", provisioned_size=1 << 30, format=types.DiskFormat.COW, shareable=True)
    with pytest.raises(Error, match="volume format is not supported for shareable disk") as caught:
        disks.add(cow)
    assert caught.value.code == 409
    disk = raw_disk(disks, shareable=False)
    idle = vms.vm_service("idle")
    idle.disk_attachments_service().add(types.DiskAttachment(disk=types.Disk(id=disk.id)))
    with pytest.raises(Error, match="not shareable and is already attached"):
        vms.vm_service("spare").disk_attachments_service().add(
            types.DiskAttachment(disk=types.Disk(id=disk.id))
        )
    idle.snapshots_service().add(types.Snapshot(description="before"))
    engine.advance(10)
    with pytest.raises(Error, match="Disk cannot be shareable if it depends on a snapshot") as caught:
        disks.disk_service(disk.id).update(types.Disk(shareable=True))
    assert caught.value.code == 409


def test_wiping_is_kept(disks: services.DisksService) -> None:
    disk = raw_disk(disks)
    assert disk.wipe_after_delete is False
    disks.disk_service(disk.id).update(types.Disk(wipe_after_delete=True))
    assert disks.disk_service(disk.id).get().wipe_after_delete is True


def test_a_state_file_has_nothing_of_it(engine: Engine, vms: services.VmsService) -> None:
    vms.vm_service("db1").nics_service().nic_service("nic1").update(types.Nic(linked=False))
    seen = engine.snapshot().vm_by_id["db1"]
    assert (
        Engine.from_snapshot(engine.snapshot(), clock=engine.queries.now).snapshot().vm_by_id["db1"] == seen
    )
