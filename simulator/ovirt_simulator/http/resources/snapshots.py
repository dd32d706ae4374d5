"""Snapshots of VMs; every VM has one more, of what it is now, which the engine calls the active VM."""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.core.entities import Job, Vm
from ovirt_simulator.core.vm_snapshot import VmSnapshot, active_id
from ovirt_simulator.http import answers, markup
from ovirt_simulator.http.answers import incomplete
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import text
from ovirt_simulator.http.render.moment import moment
from ovirt_simulator.http.resources import storage, vms
from ovirt_simulator.http.resources.actions import act, done
from ovirt_simulator.http.resources.find import present, visible_vm
from ovirt_simulator.http.users import Permit

LINKS = {"cdroms": "cdroms", "disks": "disks", "nics": "nics"}


def list_of_vm(call: Call, vm_id: str) -> list[str]:
    """Give the active one first, then the others."""
    vm = visible_vm(call, vm_id)
    return [_render(call, one) for one in (_active(call, vm), *call.queries.vm_snapshots(vm_id))]


def get_of_vm(call: Call, vm_id: str, snapshot_id: str) -> str:
    return _render(call, _snapshot(call, vm_id, snapshot_id))


def post_to_vm(call: Call, vm_id: str) -> Response:
    present(call.queries.vm(vm_id))
    body = call.body("snapshot")
    description = body.text("description")
    if description is None:
        raise incomplete("Snapshot", "description")
    call.need(Permit.MANIPULATE_VM_SNAPSHOTS)
    memory = body.boolean("persist_memorystate") is not False
    made = call.engine.snapshots.add(vm_id, description, memory=memory, caller=call.caller)
    links = call.plain_links("vms", vm_id, "snapshots", made.id)
    return answers.document(_render(call, made, links), 201)


def delete(call: Call, vm_id: str, snapshot_id: str) -> Response:
    _snapshot(call, vm_id, snapshot_id)
    call.need(Permit.MANIPULATE_VM_SNAPSHOTS)
    call.engine.snapshots.remove(vm_id, snapshot_id, caller=call.caller)
    return done()


def restore(call: Call, vm_id: str, snapshot_id: str) -> Response:
    """Let the VM be what it was; the memory of a snapshot is not restored, as the VM stays down."""
    subject = markup.entity("snapshot", markup.path("vms", vm_id, "snapshots", snapshot_id), snapshot_id)

    def command(body: Body) -> Job:
        return call.engine.snapshots.restore(vm_id, snapshot_id, caller=call.caller)

    return act(call, Permit.MANIPULATE_VM_SNAPSHOTS, "snapshot", subject, command)


def list_disks(call: Call, vm_id: str, snapshot_id: str) -> list[str]:
    known = {image.id for image in call.queries.disks()}
    disks = _snapshot(call, vm_id, snapshot_id).vm.disks
    return [storage.get_disk(call, disk.id) for disk in disks if disk.id in known]


def list_nics(call: Call, vm_id: str, snapshot_id: str) -> list[str]:
    vm = _snapshot(call, vm_id, snapshot_id).vm
    return [
        vms.render_nic(call, vm, nic, call.links("vms", vm_id, "snapshots", snapshot_id, "nics", nic.id))
        for nic in vm.nics
    ]


def list_cdroms(call: Call, vm_id: str, snapshot_id: str) -> list[str]:
    """Give none: VMs have none here."""
    _snapshot(call, vm_id, snapshot_id)
    return []


def _active(call: Call, vm: Vm) -> VmSnapshot:
    created = call.queries.now if vm.created is None else vm.created
    return VmSnapshot(id=active_id(vm.id), description="Active VM", created=created, vm=vm)


def _snapshot(call: Call, vm_id: str, snapshot_id: str) -> VmSnapshot:
    vm = visible_vm(call, vm_id)
    known = {one.id: one for one in (_active(call, vm), *call.queries.vm_snapshots(vm_id))}
    return present(known.get(snapshot_id))


def _render(call: Call, snapshot: VmSnapshot, links: Links | None = None) -> str:
    vm_id = snapshot.vm.id
    links = links or call.links("vms", vm_id, "snapshots", snapshot.id)
    return links.entity(
        "snapshot",
        snapshot.id,
        links.actions("restore"),
        text("description", snapshot.description),
        links.links(LINKS),
        text("date", moment(snapshot.created)),
        text("persist_memorystate", snapshot.memory),
        text("snapshot_status", snapshot.status),
        text("snapshot_type", "active" if snapshot.id == active_id(vm_id) else "regular"),
        links.reference("vm", "vms", vm_id),
    )
