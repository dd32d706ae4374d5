"""VMs are created from templates and removed; templates are made of VMs; disks come, grow and go."""

from __future__ import annotations

from typing import Any

import pytest
from ovirtsdk4 import Connection, Error, NotFoundError, types

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server
from tests.simulator.core.engines import codes
from tests.simulator.http.plain import request

GIB = 1 << 30
BLANK = types.Template(name="Blank")


def create(sdk: Connection, name: str, template: types.Template = BLANK, **fields: Any) -> types.Vm:
    vms = sdk.system_service().vms_service()
    cluster = types.Cluster(name="Default")
    query = fields.pop("query", {})
    return vms.add(types.Vm(name=name, cluster=cluster, template=template, **fields), query=query)


def test_a_vm_from_the_blank_template(sdk: Connection, engine: Engine) -> None:
    vm = create(sdk, "new")
    assert (vm.status, vm.memory, vm.memory_policy.guaranteed) == (types.VmStatus.DOWN, GIB, GIB)
    assert vm.template.id == "00000000-0000-0000-0000-000000000000"
    assert (vm.type, vm.os.type, vm.console.enabled) == (types.VmType.SERVER, "other", False)
    assert vm.creation_time is not None
    assert codes(engine) == [34]
    vms = sdk.system_service().vms_service()
    assert [found.id for found in vms.list(search="name=new")] == [vm.id]
    vms.vm_service(vm.id).start()
    engine.advance(60)
    assert vms.vm_service(vm.id).get().host is not None


def test_a_vm_as_it_is_asked_for(sdk: Connection, engine: Engine) -> None:
    vm = create(
        sdk,
        "new",
        description="d",
        comment="c",
        memory=2 * GIB,
        cpu=types.Cpu(
            mode=types.CpuMode.HOST_PASSTHROUGH, topology=types.CpuTopology(sockets=2, cores=2, threads=1)
        ),
        type=types.VmType.DESKTOP,
        os=types.OperatingSystem(type="rhcos_x64"),
        console=types.Console(enabled=True),
        soundcard_enabled=False,
        initialization=types.Initialization(host_name="h", custom_script="a <b> & c"),
        placement_policy=types.VmPlacementPolicy(
            affinity=types.VmAffinity.PINNED, hosts=[types.Host(name="alpha")]
        ),
    )
    assert (vm.description, vm.comment, vm.cpu.mode) == ("d", "c", types.CpuMode.HOST_PASSTHROUGH)
    assert (vm.type, vm.os.type, vm.console.enabled) == (types.VmType.DESKTOP, "rhcos_x64", True)
    assert vm.soundcard_enabled is False
    assert (vm.initialization.host_name, vm.initialization.custom_script) == ("h", "a <b> & c")
    known = engine.queries.vm(vm.id)
    assert known is not None
    assert (known.vcpus, known.memory_mb, known.pinned_hosts) == (4, 2048, ("host1",))
    assert known.guaranteed_mb == int(2048 / 1.5), "what the cluster's overcommitment leaves"
    assert sdk.system_service().vms_service().vm_service(vm.id).get().console is None, "not all content"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"name": "web1"}, 409, "already in use"),
        ({"name": "x", "memory_policy": types.MemoryPolicy(guaranteed=2 * GIB)}, 400, "Guaranteed"),
        ({"name": "x", "template": types.Template(name="nowhere")}, 404, "nowhere"),
        ({"name": "x", "template": types.Template(id="nowhere")}, 404, "nowhere"),
        (
            {"name": "x", "placement_policy": types.VmPlacementPolicy(hosts=[types.Host(name="far")])},
            400,
            "not in the same cluster",
        ),
    ],
)
def test_what_cannot_be_created(sdk: Connection, engine: Engine, fields: Any, code: int, words: str) -> None:
    with pytest.raises(Error, match=words) as caught:
        create(sdk, **fields)
    assert caught.value.code == code
    assert len(engine.queries.vms()) == 11


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ("<vm><name>x</name></vm>", "cluster.id|name"),
        ("<vm><cluster id='cluster1'/></vm>", "name"),
        ("<vm><name>x</name><cluster id='cluster1'/></vm>", "template.id|name"),
    ],
)
def test_what_a_new_vm_must_have(server: Server, body: str, missing: str) -> None:
    reply = request(f"{server.api_url}/vms", "POST", body)
    assert (reply.status, reply.xml.findtext("detail")) == (400, f"Vm [{missing}] required for add")


def test_a_removed_vm_leaves_nothing(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    vms = system.vms_service()
    group = system.clusters_service().cluster_service("cluster1").affinity_groups_service()
    group.group_service("apart").vms_service().add(types.Vm(id="idle"))
    vms.vm_service("idle").disk_attachments_service().add(
        types.DiskAttachment(disk=types.Disk(name="d", provisioned_size=GIB, format=types.DiskFormat.COW))
    )
    (disk,) = vms.vm_service("idle").disk_attachments_service().list()
    vms.vm_service("idle").remove()
    assert codes(engine)[-1] == 113
    for gone in (vms.vm_service("idle"), system.disks_service().disk_service(disk.id)):
        with pytest.raises(NotFoundError):
            gone.get()
    state = engine.snapshot()
    assert not any("idle" in one.vms for one in (*state.affinity_groups, *state.affinity_labels))
    engine.advance(600)
    for vm_id, words in (("web1", "VM is running"), ("nobody", "404")):
        with pytest.raises(Error, match=words):
            vms.vm_service(vm_id).remove()


def test_disks_can_outlive_their_vm(sdk: Connection) -> None:
    system = sdk.system_service()
    disk = system.disks_service().add(
        types.Disk(alias="d", provisioned_size=GIB, format=types.DiskFormat.RAW)
    )
    vm = create(sdk, "new")
    service = system.vms_service().vm_service(vm.id)
    service.disk_attachments_service().add(types.DiskAttachment(disk=types.Disk(id=disk.id)))
    service.remove(detach_only=True)
    assert system.disks_service().disk_service(disk.id).get().alias == "d"


def test_a_vm_that_is_removed_at_once_does_nothing_more(engine: Engine) -> None:
    engine.vms.start("spare")
    engine.advance(0.5)
    engine.vms.stop("spare")
    engine.advance(1.2)
    engine.vms.remove("spare")
    engine.advance(60)
    assert engine.queries.vm("spare") is None


def test_a_template_is_what_its_vm_was(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    source = create(sdk, "source", cpu=types.Cpu(topology=types.CpuTopology(cores=2)), memory=2 * GIB)
    attachments = system.vms_service().vm_service(source.id).disk_attachments_service()
    disk = types.Disk(name="root", provisioned_size=GIB, format=types.DiskFormat.COW, sparse=True)
    attachments.add(types.DiskAttachment(disk=disk, bootable=True, active=True))
    templates = system.templates_service()
    template = templates.add(types.Template(name="golden", vm=types.Vm(id=source.id)))
    assert (template.status, template.cpu.topology.cores) == (types.TemplateStatus.OK, 2)
    assert (template.version.version_number, template.cluster.id) == (1, "cluster1")
    (attached,) = templates.template_service(template.id).disk_attachments_service().list()
    assert (attached.active, attached.bootable) == (True, True)
    vm = create(sdk, "made", types.Template(name="golden"))
    assert (vm.memory, vm.cpu.topology.cores, vm.template.id) == (2 * GIB, 2, template.id)
    assert codes(engine)[-2:] == [37, 53]
    (copy,) = system.vms_service().vm_service(vm.id).disk_attachments_service().list()
    assert copy.id not in {attached.id, attachments.list()[0].id}
    assert sdk.follow_link(copy.disk).provisioned_size == GIB
    with pytest.raises(Error, match="used by the following VMs: made"):
        templates.template_service(template.id).remove()
    with pytest.raises(Error, match="domain must be specified"):
        system.disks_service().disk_service(attached.id).remove()
    own = types.DiskAttachment(disk=types.Disk(id=attached.id, sparse=False))
    clone = create(
        sdk, "clone", types.Template(id=template.id), disk_attachments=[own], query={"clone": "true"}
    )
    (copy,) = system.vms_service().vm_service(clone.id).disk_attachments_service().list()
    assert sdk.follow_link(copy.disk).sparse is False
    assert clone.template.id == "00000000-0000-0000-0000-000000000000"
    system.vms_service().vm_service(vm.id).remove()
    templates.template_service(template.id).remove()
    assert [found.name for found in templates.list()] == ["Blank", "tpl1"]
    with pytest.raises(Error, match="Blank Template is not allowed"):
        templates.template_service("00000000-0000-0000-0000-000000000000").remove()
    with pytest.raises(Error, match="still running"):
        templates.add(types.Template(name="x", vm=types.Vm(name="web1")))


def test_disks_grow_but_never_shrink(sdk: Connection, engine: Engine) -> None:
    disks = sdk.system_service().disks_service()
    disk = disks.add(types.Disk(alias="d", provisioned_size=GIB, format=types.DiskFormat.COW))
    assert (disk.status, disk.total_size, len(disk.storage_domains)) == (types.DiskStatus.OK, GIB, 1)
    service = disks.disk_service(disk.id)
    grown = service.update(types.Disk(alias="e", provisioned_size=2 * GIB))
    assert (grown.alias, grown.provisioned_size, grown.format) == ("e", 2 * GIB, types.DiskFormat.COW)
    with pytest.raises(Error, match="larger"):
        service.update(types.Disk(provisioned_size=GIB))
    service.remove()
    assert codes(engine) == [2021, 86, 2014]
    with pytest.raises(NotFoundError):
        service.remove()


def test_a_disk_belongs_to_one_vm_and_stays_while_that_sees_it(sdk: Connection, engine: Engine) -> None:
    system = sdk.system_service()
    disk = system.disks_service().add(
        types.Disk(alias="d", provisioned_size=GIB, format=types.DiskFormat.COW)
    )
    vms = system.vms_service()
    attachment = (
        vms.vm_service("web1")
        .disk_attachments_service()
        .add(types.DiskAttachment(disk=types.Disk(id=disk.id), active=True))
    )
    assert attachment.active is True
    with pytest.raises(Error, match="already attached") as caught:
        vms.vm_service("web2").disk_attachments_service().add(types.DiskAttachment(disk=disk))
    assert caught.value.code == 409
    with pytest.raises(Error, match="one of the VMs is not down"):
        system.disks_service().disk_service(disk.id).remove()
    vms.vm_service("web1").disk_attachments_service().attachment_service(disk.id).update(
        types.DiskAttachment(active=False)
    )
    system.disks_service().disk_service(disk.id).remove()
    assert vms.vm_service("web1").disk_attachments_service().list() == []


def test_what_is_uploaded_goes_nowhere(sdk: Connection, server: Server) -> None:
    disks = sdk.system_service().disks_service()
    disk = disks.add(types.Disk(alias="d", provisioned_size=GIB, format=types.DiskFormat.RAW))
    transfers = sdk.system_service().image_transfers_service()
    transfer = transfers.add(types.ImageTransfer(image=types.Image(id=disk.id)))
    service = transfers.image_transfer_service(transfer.id)
    assert service.get().phase == types.ImageTransferPhase.TRANSFERRING
    assert transfer.transfer_url.startswith(f"{server.url}/images/")
    assert request(transfer.transfer_url, "OPTIONS", user=None).status == 200
    assert request(transfer.transfer_url, "PUT", b"x" * 3_000_000, user=None).status == 200
    service.finalize()
    assert service.get().phase == types.ImageTransferPhase.FINISHED_SUCCESS
    service.cancel()
    assert service.get().phase == types.ImageTransferPhase.FINISHED_FAILURE
    with pytest.raises(Error, match="no content to download"):
        transfers.add(
            types.ImageTransfer(disk=types.Disk(id=disk.id), direction=types.ImageTransferDirection.DOWNLOAD)
        )
    with pytest.raises(NotFoundError):
        transfers.add(types.ImageTransfer(disk=types.Disk(id="nowhere")))


def test_the_welcome_page_sends_round_who_has_no_browser(server: Server) -> None:
    target = "/ovirt-engine"
    for _ in range(3):
        reply = request(f"{server.url}{target}")
        assert reply.status == 302
        target = reply.headers["location"].removeprefix(server.url)
    assert target == "/ovirt-engine/"
