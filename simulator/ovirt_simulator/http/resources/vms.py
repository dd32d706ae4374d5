"""VMs and their sub-collections; VMs that are added, changed and removed."""

from __future__ import annotations

from werkzeug import Response

from ovirt_placement.model import Disk, Nic
from ovirt_simulator.core.entities import Vm
from ovirt_simulator.http import answers, markup
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import vm as render
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import cluster_id, named, present, visible_vm
from ovirt_simulator.http.resources.vm_bodies import vm_edit
from ovirt_simulator.http.search import searched
from ovirt_simulator.http.users import Permit


def list_vms(call: Call) -> list[str]:
    records = call.queries.vms()
    if call.filtered:
        records = tuple(vm for vm in records if vm.id in call.user.vms)
    return [render_vm(call, vm) for vm in searched(call, "vms", records)]


def get_vm(call: Call, vm_id: str) -> str:
    return render_vm(call, visible_vm(call, vm_id))


def render_vm(call: Call, vm: Vm) -> str:
    """Render a VM as this user sees it, following what this call asks to follow."""
    host = None if vm.host is None else call.queries.host(vm.host)
    address = None if host is None else host.address

    def fresh() -> str:
        links, restricted = call.links("vms", vm.id), call.filtered
        return render.vm(vm, links, address=address, restricted=restricted, all_content=call.all_content)

    if call.follow or call.filtered or call.all_content:
        return fresh()
    return call.cache.get(markup.path("vms", vm.id), (vm, address), fresh)


def put_vm(call: Call, vm_id: str) -> Response:
    """Change what the body names.

    The cluster is changed by a command of its own, before and whatever becomes of the others.
    """
    present(call.queries.vm(vm_id))
    body = call.body("vm")
    call.need(Permit.EDIT_VM_PROPERTIES)
    wanted = cluster_id(call, body.child("cluster"))
    if wanted is not None:
        call.engine.vms.change_cluster(vm_id, wanted, caller=call.caller)
    vm = call.engine.vms.edit(vm_id, vm_edit(call, body), caller=call.caller)
    return answers.document(render_vm(call, vm))


def post_vm(call: Call) -> Response:
    """Create a VM in a cluster, which the body names by id or name, of the template Blank."""
    body = call.body("vm")
    cluster = body.child("cluster")
    missing = [tag for tag in ("name",) if not body.text(tag)] + ([] if cluster else ["cluster.id|name"])
    if missing or cluster is None:
        raise incomplete("Vm", *missing)
    call.need(Permit.EDIT_VM_PROPERTIES)
    wanted = named(cluster, call.queries.clusters())
    vm = call.engine.vms.create(wanted, vm_edit(call, body), caller=call.caller)
    return answers.document(render_vm(call, vm), 201)


def delete_vm(call: Call, vm_id: str) -> Response:
    present(call.queries.vm(vm_id))
    call.need(Permit.EDIT_VM_PROPERTIES)
    call.engine.vms.remove(vm_id, caller=call.caller)
    return done()


def post_nic(call: Call, vm_id: str) -> Response:
    vm, body = present(call.queries.vm(vm_id)), call.body("nic")
    if not body.text("name"):
        raise incomplete("Nic", "name")
    call.need(Permit.EDIT_VM_PROPERTIES)
    nic = Nic(id="", name=body.text("name") or "", vnic_profile=body.child_id("vnic_profile"))
    added = call.engine.devices.add_nic(vm_id, nic, caller=call.caller)
    return answers.document(_render_nic(vm, added, call.plain_links("vms", vm_id, "nics", added.id)), 201)


def delete_nic(call: Call, vm_id: str, nic_id: str) -> Response:
    call.need(Permit.EDIT_VM_PROPERTIES)
    call.engine.devices.remove_nic(vm_id, nic_id, caller=call.caller)
    return done()


def post_disk_attachment(call: Call, vm_id: str) -> Response:
    """Give a VM a disk that the body names by its id."""
    vm, body = present(call.queries.vm(vm_id)), call.body("disk_attachment")
    disk_id = body.child_id("disk")
    if disk_id is None:
        raise incomplete("DiskAttachment", "disk.id")
    call.need(Permit.EDIT_VM_PROPERTIES)
    disk = Disk(id=disk_id, bootable=bool(body.boolean("bootable")))
    call.engine.devices.attach_disk(vm_id, disk, caller=call.caller)
    links = call.plain_links("vms", vm_id, "diskattachments", disk.id)
    return answers.document(render.disk_attachment(vm, disk, links), 201)


def delete_disk_attachment(call: Call, vm_id: str, disk_id: str) -> Response:
    call.need(Permit.EDIT_VM_PROPERTIES)
    call.engine.devices.detach_disk(vm_id, disk_id, caller=call.caller)
    return done()


def list_disk_attachments(call: Call, vm_id: str) -> list[str]:
    vm = visible_vm(call, vm_id)
    return [
        render.disk_attachment(vm, disk, call.links("vms", vm_id, "diskattachments", disk.id))
        for disk in vm.disks
    ]


def get_disk_attachment(call: Call, vm_id: str, disk_id: str) -> str:
    vm = visible_vm(call, vm_id)
    disk = present(next((disk for disk in vm.disks if disk.id == disk_id), None))
    return render.disk_attachment(vm, disk, call.links("vms", vm_id, "diskattachments", disk_id))


def get_disk(call: Call, disk_id: str) -> str:
    """Give what VMs have of a disk, if any has it."""
    disks = (disk for vm in call.queries.vms() for disk in vm.disks)
    disk = present(next((disk for disk in disks if disk.id == disk_id), None))
    return render.disk(disk, call.links("disks", disk_id))


def list_nics(call: Call, vm_id: str) -> list[str]:
    vm = visible_vm(call, vm_id)
    return [_render_nic(vm, nic, call.links("vms", vm_id, "nics", nic.id)) for nic in vm.nics]


def get_nic(call: Call, vm_id: str, nic_id: str) -> str:
    vm = visible_vm(call, vm_id)
    nic = present(next((nic for nic in vm.nics if nic.id == nic_id), None))
    return _render_nic(vm, nic, call.links("vms", vm_id, "nics", nic_id))


def _render_nic(vm: Vm, nic: Nic, links: Links) -> str:
    return render.nic(vm, nic, links)
