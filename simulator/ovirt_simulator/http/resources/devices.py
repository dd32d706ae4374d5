"""Disks and network interfaces of VMs, attached, changed and detached; vNIC profiles, added."""

from __future__ import annotations

from msgspec.structs import replace
from werkzeug import Response

from ovirt_simulator.core.devices import Attachment, Nic
from ovirt_simulator.core.entities import Vm
from ovirt_simulator.core.nic_rules import DESCRIPTIONS
from ovirt_simulator.http import answers
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body, member
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import infrastructure
from ovirt_simulator.http.render import vm as render
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.resources.storage import disk_edit, new_disk
from ovirt_simulator.http.resources.vms import render_nic
from ovirt_simulator.http.users import Permit

_DISK_INTERFACES = ("ide", "sata", "spapr_vscsi", "virtio", "virtio_scsi")


def post_nic(call: Call, vm_id: str) -> Response:
    vm = _vm(call, vm_id)
    body = call.body("nic")
    name = body.text("name")
    if not name:
        raise incomplete("Nic", "name")
    call.need(Permit.EDIT_VM_PROPERTIES)
    nic = _like(body, Nic(id="", name=name))
    nic = call.engine.devices.add_nic(vm_id, nic, mac=_mac(body), caller=call.caller)
    return answers.document(_nic(call, vm, nic), 201)


def put_nic(call: Call, vm_id: str, nic_id: str) -> Response:
    """Change what the body names; an empty vNIC profile takes the present one away."""
    vm = _vm(call, vm_id)
    nic = present(next((nic for nic in vm.nics if nic.id == nic_id), None))
    body = call.body("nic")
    call.need(Permit.EDIT_VM_PROPERTIES)
    nic = call.engine.devices.edit_nic(vm_id, _like(body, nic), mac=_mac(body), caller=call.caller)
    return answers.document(_nic(call, vm, nic))


def activate_nic(call: Call, vm_id: str, nic_id: str) -> Response:
    return _plug(call, vm_id, nic_id, plugged=True)


def deactivate_nic(call: Call, vm_id: str, nic_id: str) -> Response:
    return _plug(call, vm_id, nic_id, plugged=False)


def _plug(call: Call, vm_id: str, nic_id: str, *, plugged: bool) -> Response:
    """Change nothing else, which is no job."""
    nic = present(next((nic for nic in _vm(call, vm_id).nics if nic.id == nic_id), None))
    call.body("action")
    call.need(Permit.EDIT_VM_PROPERTIES)
    call.engine.devices.edit_nic(vm_id, replace(nic, plugged=plugged), caller=call.caller)
    return done()


def _like(body: Body, nic: Nic) -> Nic:
    """Give a NIC with what the body says of it."""
    given = {
        "name": body.text("name"),
        "interface": member(body, "interface", "NicInterface", DESCRIPTIONS),
        "linked": body.boolean("linked"),
        "plugged": body.boolean("plugged"),
    }
    profile = nic.vnic_profile if body.child("vnic_profile") is None else body.child_id("vnic_profile")
    known = {name: value for name, value in given.items() if value is not None}
    return replace(nic, vnic_profile=profile, **known)


def _mac(body: Body) -> str | None:
    mac = body.child("mac")
    return None if mac is None else mac.text("address")


def delete_nic(call: Call, vm_id: str, nic_id: str) -> Response:
    call.need(Permit.EDIT_VM_PROPERTIES)
    call.engine.devices.remove_nic(vm_id, nic_id, caller=call.caller)
    return done()


def post_disk_attachment(call: Call, vm_id: str) -> Response:
    """Attach the disk that the body names by id, perhaps with its profile; or a new one that it describes."""
    vm = _vm(call, vm_id)
    body = call.body("disk_attachment")
    wanted = body.child("disk")
    if wanted is None or (wanted.id is None and not wanted.text("provisioned_size")):
        raise incomplete("DiskAttachment", "disk.id")
    call.need(Permit.EDIT_VM_PROPERTIES)
    how = _attachment(body, Attachment(id="", bootable=False, active=False))
    disk_id = wanted.id or call.engine.disks.add(new_disk(call, wanted), caller=call.caller).id
    disk = replace(how, id=disk_id, profile=wanted.child_id("disk_profile"))
    return answers.document(_attached(call, vm, disk), 201)


def put_disk_attachment(call: Call, vm_id: str, disk_id: str) -> Response:
    """Change how the VM sees the disk, and the disk itself."""
    vm = _vm(call, vm_id)
    disk = present(next((disk for disk in vm.disks if disk.id == disk_id), None))
    body = call.body("disk_attachment")
    call.need(Permit.EDIT_VM_PROPERTIES)
    wanted, changed = body.child("disk"), _attachment(body, disk)
    if wanted is not None:
        call.engine.disks.edit(disk_id, disk_edit(wanted), caller=call.caller)
        changed = replace(changed, profile=wanted.child_id("disk_profile") or disk.profile)
    return answers.document(_attached(call, vm, changed))


def _attachment(body: Body, disk: Attachment) -> Attachment:
    """Give a disk as a VM has it, with what the body says of that."""
    given = {
        "active": body.boolean("active"),
        "bootable": body.boolean("bootable"),
        "interface": member(body, "interface", "DiskInterface", _DISK_INTERFACES),
        "pass_discard": body.boolean("pass_discard"),
        "read_only": body.boolean("read_only"),
        "scsi_reservation": body.boolean("uses_scsi_reservation"),
    }
    return replace(disk, **{name: value for name, value in given.items() if value is not None})


def delete_disk_attachment(call: Call, vm_id: str, disk_id: str) -> Response:
    call.need(Permit.EDIT_VM_PROPERTIES)
    call.engine.devices.detach_disk(vm_id, disk_id, caller=call.caller)
    return done()


def post_vnic_profile(call: Call) -> Response:
    """Add a vNIC profile of the network that the body names by its id."""
    network_id = call.body("vnic_profile").child_id("network")
    if network_id is None:
        raise incomplete("VnicProfile", "network.id", verb="validateParameters")
    return post_vnic_profile_of(call, network_id)


def delete_vnic_profile(call: Call, profile_id: str, **_: str) -> Response:
    call.need(Permit.EDIT_STORAGE_POOL_CONFIGURATION)
    call.engine.devices.remove_vnic_profile(profile_id, caller=call.caller)
    return done()


def post_vnic_profile_of(call: Call, network_id: str) -> Response:
    name = call.body("vnic_profile").text("name")
    if not name:
        raise incomplete("VnicProfile", "name")
    call.need(Permit.EDIT_STORAGE_POOL_CONFIGURATION)
    profile = call.engine.devices.add_vnic_profile(name, network_id, caller=call.caller)
    links = call.plain_links("vnicprofiles", profile.id)
    return answers.document(infrastructure.vnic_profile(profile, links), 201)


def _vm(call: Call, vm_id: str) -> Vm:
    return present(call.queries.vm(vm_id))


def _nic(call: Call, vm: Vm, nic: Nic) -> str:
    return render_nic(call, vm, nic, call.plain_links("vms", vm.id, "nics", nic.id))


def _attached(call: Call, vm: Vm, disk: Attachment) -> str:
    call.engine.devices.attach_disk(vm.id, disk, caller=call.caller)
    return render.disk_attachment(vm, disk, call.plain_links("vms", vm.id, "diskattachments", disk.id))
