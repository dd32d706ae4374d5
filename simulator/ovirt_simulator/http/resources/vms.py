"""VMs and their sub-collections; VMs that are added, changed and removed."""

from __future__ import annotations

from werkzeug import Response

from ovirt_placement.model import Disk
from ovirt_simulator.core.entities import Vm
from ovirt_simulator.core.images import DiskEdit
from ovirt_simulator.core.vm_creation import NewVm
from ovirt_simulator.http import answers, markup
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import vm as render
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import cluster_id, images, named, present, visible_vm
from ovirt_simulator.http.resources.searching import searched
from ovirt_simulator.http.resources.storage import disk_edit
from ovirt_simulator.http.resources.vm_bodies import vm_edit
from ovirt_simulator.http.users import Permit


def list_vms(call: Call) -> list[str]:
    records = call.queries.vms()
    if call.filtered:
        records = tuple(vm for vm in records if vm.id in call.user.vms)
    return [render_vm(call, vm) for vm in searched(call, "VM", records)]


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
    """Create a VM from a template, which need not be the Blank one, in a cluster; both by id or name."""
    body = call.body("vm")
    cluster, template = body.child("cluster"), body.child("template")
    if cluster is None:
        raise incomplete("Vm", "cluster.id|name")
    if not body.text("name"):
        raise incomplete("Vm", "name")
    if template is None:
        raise incomplete("Vm", "template.id|name")
    call.need(Permit.CREATE_VM)
    order = NewVm(
        template=named(template, call.queries.templates()),
        cluster=named(cluster, call.queries.clusters()),
        edit=vm_edit(call, body),
        clone=bool(call.flag("clone")),
        disks=_disks(body),
    )
    vm = call.engine.vms.create(order, caller=call.caller)
    return answers.document(render_vm(call, vm), 201)


def _disks(body: Body) -> dict[str, DiskEdit]:
    """Read what the copies of the template's disks are to have of their own, by the ids of these."""
    attachments = body.child("disk_attachments")
    found = (
        []
        if attachments is None
        else [each.child("disk") for each in attachments.children("disk_attachment")]
    )
    return {disk.id: disk_edit(disk) for disk in found if disk is not None and disk.id is not None}


def delete_vm(call: Call, vm_id: str) -> Response:
    present(call.queries.vm(vm_id))
    call.need(Permit.DELETE_VM)
    call.engine.vms.remove(vm_id, disks=not call.flag("detach_only"), caller=call.caller)
    return done()


def list_disk_attachments(call: Call, vm_id: str) -> list[str]:
    vm = visible_vm(call, vm_id)
    return [
        render_attachment(call, vm, disk, call.links("vms", vm_id, "diskattachments", disk.id))
        for disk in vm.disks
    ]


def get_disk_attachment(call: Call, vm_id: str, disk_id: str) -> str:
    vm = visible_vm(call, vm_id)
    disk = present(next((disk for disk in vm.disks if disk.id == disk_id), None))
    return render_attachment(call, vm, disk, call.links("vms", vm_id, "diskattachments", disk_id))


def render_attachment(call: Call, vm: Vm, disk: Disk, links: Links) -> str:
    return render.disk_attachment(vm, disk, links, images(call)[disk.id])


def list_nics(call: Call, vm_id: str) -> list[str]:
    vm = visible_vm(call, vm_id)
    return [render.nic(vm, nic, call.links("vms", vm_id, "nics", nic.id)) for nic in vm.nics]


def get_nic(call: Call, vm_id: str, nic_id: str) -> str:
    vm = visible_vm(call, vm_id)
    nic = present(next((nic for nic in vm.nics if nic.id == nic_id), None))
    return render.nic(vm, nic, call.links("vms", vm_id, "nics", nic_id))
