"""VMs and their sub-collections; VMs that are added, changed and removed."""

from __future__ import annotations

from msgspec.structs import replace
from werkzeug import Response

from ovirt_simulator.core.devices import Nic
from ovirt_simulator.core.entities import Vm
from ovirt_simulator.core.images import BLANK_TEMPLATE, DiskEdit, Template
from ovirt_simulator.core.next_run import configured
from ovirt_simulator.core.vm_creation import NewVm
from ovirt_simulator.http import answers, kept, markup
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.render import vm as render
from ovirt_simulator.http.resources import particulars
from ovirt_simulator.http.resources.actions import done
from ovirt_simulator.http.resources.find import cluster_id, named, present, visible_vm
from ovirt_simulator.http.resources.searching import searched
from ovirt_simulator.http.resources.storage import new_disk
from ovirt_simulator.http.resources.vm_bodies import vm_edit
from ovirt_simulator.http.users import Permit


def list_vms(call: Call) -> list[str]:
    records = call.queries.vms()
    if call.filtered:
        records = tuple(vm for vm in records if vm.id in call.user.vms)
    return [render_vm(call, vm) for vm in searched(call, "VM", records)]


def get_vm(call: Call, vm_id: str) -> str:
    return render_vm(call, _as_asked(call, visible_vm(call, vm_id)))


def _as_asked(call: Call, vm: Vm) -> Vm:
    """Give the VM as it runs, or as it will when it starts again."""
    if vm.next_run is None or not call.flag("next_run"):
        return vm
    return replace(configured(vm, vm.next_run), next_run=vm.next_run)


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
    edit = vm_edit(call, body)
    shown = render_vm(call, _as_asked(call, present(call.queries.vm(vm_id))))
    edit = replace(edit, others=particulars.changed(edit.others or {}, shown, kept.OF_VMS))
    vm = call.engine.vms.edit(vm_id, edit, later=bool(call.flag("next_run")), caller=call.caller)
    return answers.document(render_vm(call, vm))


def post_vm(call: Call) -> Response:
    """Create a VM in a cluster, from a template, both by id or name; or from a snapshot, by its id."""
    body = call.body("vm")
    cluster, template = body.child("cluster"), body.child("template")
    if cluster is None:
        raise incomplete("Vm", "cluster.id|name")
    if not body.text("name"):
        raise incomplete("Vm", "name")
    snapshot = _snapshot(body)
    if template is None and snapshot is None:
        raise incomplete("Vm", "template.id|name")
    call.need(Permit.CREATE_VM)
    order = NewVm(
        template=BLANK_TEMPLATE
        if template is None or snapshot is not None
        else named(template, latest_first(call)),
        snapshot=snapshot,
        cluster=named(cluster, call.queries.clusters()),
        edit=vm_edit(call, body),
        clone=bool(call.flag("clone")),
        disks=_disks(call, body),
    )
    vm = call.engine.vms.create(order, caller=call.caller)
    return answers.document(render_vm(call, vm), 201)


def latest_first(call: Call) -> list[Template]:
    """Give all templates; a name means the latest of the versions that have it."""
    return sorted(call.queries.templates(), key=lambda template: template.version, reverse=True)


def _snapshot(body: Body) -> str | None:
    """Read the id of the snapshot that the VM is to be made from; of several the first counts."""
    snapshots = body.child("snapshots")
    listed = [] if snapshots is None else snapshots.children("snapshot")
    if listed and listed[0].id is None:
        raise incomplete("Snapshot", "id")
    return listed[0].id if listed else None


def _disks(call: Call, body: Body) -> dict[str, DiskEdit]:
    """Read what the copies of the template's disks are to have of their own, by the ids of these."""
    attachments = body.child("disk_attachments")
    found = (
        []
        if attachments is None
        else [each.child("disk") for each in attachments.children("disk_attachment")]
    )
    return {disk.id: new_disk(call, disk) for disk in found if disk is not None and disk.id is not None}


def delete_vm(call: Call, vm_id: str) -> Response:
    present(call.queries.vm(vm_id))
    call.need(Permit.DELETE_VM)
    call.engine.vms.remove(vm_id, disks=not call.flag("detach_only"), caller=call.caller)
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


def list_nics(call: Call, vm_id: str) -> list[str]:
    vm = visible_vm(call, vm_id)
    return [render_nic(call, vm, nic, call.links("vms", vm_id, "nics", nic.id)) for nic in vm.nics]


def get_nic(call: Call, vm_id: str, nic_id: str) -> str:
    vm = visible_vm(call, vm_id)
    nic = present(next((nic for nic in vm.nics if nic.id == nic_id), None))
    return render_nic(call, vm, nic, call.links("vms", vm_id, "nics", nic_id))


def render_nic(call: Call, vm: Vm, nic: Nic, links: Links) -> str:
    return render.nic(vm, nic, links, mac=call.queries.mac_address(nic.id))
