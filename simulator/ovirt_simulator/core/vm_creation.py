"""VMs that come from a template, and go.

Source: the engine's AddVmCommand, AddVmFromTemplateCommand and RemoveVmCommand. Copying and removing disks,
which takes an engine time, is done at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from . import image_refusals, refusals, vm_edit
from .backend import Backend
from .change_cluster_command import first_cpu_profile, leave_groups_and_labels
from .disk_copies import copied
from .entities import Caller, Cluster, Record, Vm
from .event_codes import EventCode, EventType
from .images import BLANK_TEMPLATE, DiskEdit, Template, template_of
from .rejections import NotFound
from .running import Running
from .vm_edit import VmEdit
from .vm_snapshot import check_not_during


class NewVm(Record, frozen=True):
    """What a client asks for."""

    #: The ids of both.
    template: str
    cluster: str
    edit: VmEdit
    #: The id of the snapshot that it is made from, instead of a template.
    snapshot: str | None = None
    #: Whether it depends on its template no more.
    clone: bool = False
    #: What copies of the template's disks are to have of their own, by the ids of these.
    disks: Mapping[str, DiskEdit] = MappingProxyType({})


class VmCreation:
    """The caller holds the engine's lock."""

    def __init__(self, backend: Backend, running: Running) -> None:
        self._backend = backend
        self._state = backend.state
        self._running = running

    def create(self, order: NewVm, caller: Caller) -> Vm:
        """Add a VM that is down. Raises `NotFound` and `Rejected`."""
        cluster = self._state.clusters.get(order.cluster)
        if cluster is None:
            raise NotFound(order.cluster)
        template = self._template(order)
        plain = self._plain(template, cluster, clone=order.clone)
        instance_type = self._state.instance_types.get(order.edit.instance_type or "")
        vm = order.edit.applied(plain if instance_type is None else instance_type.applied(plain))
        if order.edit.memory_mb is not None and order.edit.guaranteed_mb is None:
            guaranteed = int(vm.memory_mb * 100 / max(1, cluster.memory_overcommit_percent or 100))
            vm = replace(vm, guaranteed_mb=guaranteed)
        vm_edit.check(self._state, None, vm, "add")
        copies = (
            copied(self._backend, disk, cluster.id, order.disks.get(disk.id)) for disk in template.vm.disks
        )
        vm = replace(vm, disks=tuple(copies))
        self._state.put_vm(vm)
        source = f" from Template {template.name}" if order.clone else ""
        self._backend.jobs.note(f"Creating VM {vm.name}{source} in Cluster {cluster.name}", caller)
        for code in self._reported(vm):
            self._backend.audit_log.log(code, caller, vm=vm, cluster=cluster)
        return vm

    def remove(self, vm: Vm, *, disks: bool, caller: Caller) -> None:
        """Remove a VM that is down, with its permissions and, unless they shall stay, its disks."""
        _check_free_to_go(vm)
        snapshots = [one for one in self._state.vm_snapshots.values() if one.vm.id == vm.id]
        check_not_during(snapshots, vm, "remove")
        if snapshots and vm.disks and not disks:
            raise image_refusals.vm_with_snapshots()
        for disk in vm.disks:
            image = self._state.image(disk.id)
            if disks and not (image and image.shareable):
                self._state.images.pop(disk.id, None)
            elif image is not None:
                self._state.put(self._state.images, image)
        for permission in self._state.permissions_on(vm):
            self._state.drop(self._state.permissions, permission.id)
        leave_groups_and_labels(self._state, vm.id)
        self._running.forget(vm.id)
        self._state.drop_vm(vm.id)
        self._backend.jobs.note(f"Removing VM {vm.name} from system", caller)
        self._backend.audit_log.log(EventCode.USER_REMOVE_VM_FINISHED, caller, vm=vm)

    def _template(self, order: NewVm) -> Template:
        """Give what the VM is made from; a snapshot serves as a template that the VM does not depend on."""
        if order.snapshot is None:
            template = self._state.template(order.template)
            if template is None:
                raise NotFound(order.template)
            return template
        snapshot = self._state.vm_snapshots.get(order.snapshot)
        if snapshot is None:
            raise NotFound(order.snapshot)
        check_not_during(self._state.vm_snapshots.values(), snapshot.vm, "add")
        vm = template_of(snapshot.vm, order.template, snapshot.vm.name)
        nics = tuple(replace(nic, id=self._backend.new_id()) for nic in snapshot.vm.nics)
        return Template(id=order.template, name=vm.name, vm=replace(vm, disks=snapshot.vm.disks, nics=nics))

    def _plain(self, template: Template, cluster: Cluster, *, clone: bool) -> Vm:
        """Give what a VM from this template is if nothing is said of it."""
        same_cluster = template.vm.cluster == cluster.id
        return replace(
            template.vm,
            id=self._backend.new_id(),
            cluster=cluster.id,
            template=None if clone or template.id == BLANK_TEMPLATE else template.id,
            cpu_profile=template.vm.cpu_profile
            if same_cluster
            else first_cpu_profile(self._state, cluster.id),
            created=self._backend.now,
            description="",
            disks=(),
        )

    @staticmethod
    def _reported(vm: Vm) -> tuple[EventType, ...]:
        """With disks to copy, it begins and ends."""
        if vm.disks:
            return EventCode.USER_ADD_VM_STARTED, EventCode.USER_ADD_VM_FINISHED_SUCCESS
        return (EventCode.USER_ADD_VM,)


def _check_free_to_go(vm: Vm) -> None:
    """Refuse the removal of a VM that is not down, or that must stay."""
    if vm.particulars.delete_protected:
        raise refusals.vm_delete_protected()
    if vm.status == "suspended":
        raise refusals.vm_not_down_for_removal()
    if vm.status == "image_locked":
        raise refusals.vm_image_locked("remove")
    if vm.status not in {"down", "image_illegal"}:
        raise refusals.vm_running("remove")
    if vm.pool is not None:
        raise refusals.conflict(
            "ACTION_TYPE_FAILED_VM_ATTACHED_TO_POOL", "Cannot remove VM. VM is attached to a VM Pool."
        )
