"""VMs and their sub-collections, and the change of a VM."""

from __future__ import annotations

from typing import Any

from werkzeug import Response

from ovirt_placement.model import Disk
from ovirt_simulator.core.entities import Vm
from ovirt_simulator.core.vm_commands import VmEdit
from ovirt_simulator.http import answers, markup
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import infrastructure
from ovirt_simulator.http.render import vm as render
from ovirt_simulator.http.resources.find import cluster_id, host_id, present, visible_vm
from ovirt_simulator.http.search import fields
from ovirt_simulator.http.search.select import select
from ovirt_simulator.http.users import Permit


def list_vms(call: Call) -> list[str]:
    records = call.queries.vms()
    if call.filtered:
        records = tuple(vm for vm in records if vm.id in call.user.vms)
    found = select(records, fields.vms(call.queries), **call.search)
    return [render_vm(call, vm) for vm in found]


def get_vm(call: Call, vm_id: str) -> str:
    return render_vm(call, visible_vm(call, vm_id))


def render_vm(call: Call, vm: Vm) -> str:
    """Render a VM as this user sees it, following what this call asks to follow."""
    host = None if vm.host is None else call.queries.host(vm.host)
    address = None if host is None else host.address

    def fresh() -> str:
        return render.vm(vm, call.links("vms", vm.id), address=address, restricted=call.filtered)

    if call.follow or call.filtered:
        return fresh()
    return call.cache.get(markup.path("vms", vm.id), (vm, address), fresh)


def put_vm(call: Call, vm_id: str) -> Response:
    """Change cluster, description, high availability or placement policy; the rest is read past.

    The cluster is changed by a command of its own, before and whatever becomes of the others.
    """
    present(call.queries.vm(vm_id))
    body = call.body("vm")
    call.need(Permit.EDIT_VM_PROPERTIES)
    wanted = cluster_id(call, body.child("cluster"))
    if wanted is not None:
        call.engine.vms.change_cluster(vm_id, wanted, caller=call.caller)
    availability = body.child("high_availability")
    edit = VmEdit(
        description=body.text("description"),
        ha=None if availability is None else availability.boolean("enabled"),
        **_placement(call, body.child("placement_policy")),
    )
    vm = call.engine.vms.edit(vm_id, edit, caller=call.caller)
    return answers.document(render_vm(call, vm))


def _placement(call: Call, policy: Body | None) -> dict[str, Any]:
    """Read a placement policy; the state file knows of its affinity whether the engine may migrate the VM."""
    if policy is None:
        return {}
    affinity, hosts = policy.text("affinity"), policy.child("hosts")
    named = None if hosts is None else [host_id(call, host) for host in hosts.children("host")]
    return {
        "migratable": None if affinity is None else affinity == "migratable",
        "pinned_hosts": None if named is None else tuple(host for host in named if host is not None),
    }


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
    return [render.nic(vm, nic, call.links("vms", vm_id, "nics", nic.id)) for nic in vm.nics]


def get_nic(call: Call, vm_id: str, nic_id: str) -> str:
    vm = visible_vm(call, vm_id)
    nic = present(next((nic for nic in vm.nics if nic.id == nic_id), None))
    return render.nic(vm, nic, call.links("vms", vm_id, "nics", nic_id))


def list_disks(call: Call) -> list[str]:
    """Every disk that a VM has attached, once."""
    return [infrastructure.disk(disk, call.links("disks", disk.id)) for disk in _disks(call).values()]


def get_disk(call: Call, disk_id: str) -> str:
    return infrastructure.disk(present(_disks(call).get(disk_id)), call.links("disks", disk_id))


def _disks(call: Call) -> dict[str, Disk]:
    return call.once("disks", lambda: {disk.id: disk for vm in call.queries.vms() for disk in vm.disks})
