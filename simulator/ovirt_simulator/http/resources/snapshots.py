"""The snapshot that every VM has: what it is now, which the engine calls the active VM."""

from __future__ import annotations

from ovirt_simulator.core.entities import Vm, stable_id
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import text
from ovirt_simulator.http.render.moment import moment
from ovirt_simulator.http.resources import storage, vms
from ovirt_simulator.http.resources.find import present, visible_vm

LINKS = {"cdroms": "cdroms", "disks": "disks", "nics": "nics"}


def list_of_vm(call: Call, vm_id: str) -> list[str]:
    return [_render(call, visible_vm(call, vm_id))]


def get_of_vm(call: Call, vm_id: str, snapshot_id: str) -> str:
    return _render(call, _vm(call, vm_id, snapshot_id))


def list_disks(call: Call, vm_id: str, snapshot_id: str) -> list[str]:
    vm = _vm(call, vm_id, snapshot_id)
    return [storage.get_disk(call, disk.id) for disk in vm.disks]


def list_nics(call: Call, vm_id: str, snapshot_id: str) -> list[str]:
    _vm(call, vm_id, snapshot_id)
    return vms.list_nics(call, vm_id)


def list_cdroms(call: Call, vm_id: str, snapshot_id: str) -> list[str]:
    """Give none: VMs have none here."""
    _vm(call, vm_id, snapshot_id)
    return []


def _vm(call: Call, vm_id: str, snapshot_id: str) -> Vm:
    vm = visible_vm(call, vm_id)
    present(snapshot_id if snapshot_id == stable_id("snapshot", vm_id) else None)
    return vm


def _render(call: Call, vm: Vm) -> str:
    identity = stable_id("snapshot", vm.id)
    links = call.links("vms", vm.id, "snapshots", identity)
    return links.entity(
        "snapshot",
        identity,
        links.actions("restore"),
        text("description", "Active VM"),
        links.links(LINKS),
        text("date", moment(vm.created)),
        text("persist_memorystate", False),
        text("snapshot_status", "ok"),
        text("snapshot_type", "active"),
        links.reference("vm", "vms", vm.id),
    )
