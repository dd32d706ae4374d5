"""VMs that come from a template, and go.

Source: the engine's AddVmCommand, AddVmFromTemplateCommand and RemoveVmCommand. Copying and removing disks,
which takes an engine time, is done at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from . import refusals, vm_edit
from .backend import Backend
from .change_cluster_command import first_cpu_profile, leave_groups_and_labels
from .disk_copies import copied
from .entities import Caller, Cluster, Record, Vm
from .event_codes import EventCode
from .images import BLANK_TEMPLATE, DiskEdit, Template
from .rejections import NotFound
from .running import Running
from .vm_edit import VmEdit


class NewVm(Record, frozen=True):
    """What a client asks for."""

    #: The ids of both.
    template: str
    cluster: str
    edit: VmEdit
    #: Whether it depends on its template no more.
    clone: bool = False
    #: What copies of the template's disks are to have of their own, by the ids of these.
    disks: Mapping[str, DiskEdit] = MappingProxyType({})


class VmCreation:
    """Whoever calls it holds the engine's lock."""

    def __init__(self, backend: Backend, running: Running) -> None:
        self._backend = backend
        self._state = backend.state
        self._running = running

    def create(self, order: NewVm, caller: Caller) -> Vm:
        """Add a VM that is down. Raises `NotFound` and `Rejected`."""
        template, cluster = self._state.template(order.template), self._state.clusters.get(order.cluster)
        if template is None or cluster is None:
            raise NotFound(order.template if template is None else order.cluster)
        vm = order.edit.applied(self._plain(template, cluster, clone=order.clone))
        if order.edit.memory_mb is not None and order.edit.guaranteed_mb is None:
            guaranteed = int(vm.memory_mb * 100 / max(1, cluster.memory_overcommit_percent or 100))
            vm = replace(vm, guaranteed_mb=guaranteed)
        vm_edit.check(self._state, None, vm, "add")
        copies = (copied(self._backend, disk, order.disks.get(disk.id)) for disk in template.vm.disks)
        vm = replace(vm, disks=tuple(copies))
        self._state.put_vm(vm)
        for code in self._told(vm):
            self._backend.audit_log.log(code, caller, vm=vm, cluster=cluster)
        return vm

    def remove(self, vm: Vm, *, disks: bool, caller: Caller) -> None:
        """Remove a VM that is down, with its permissions and, unless they shall stay, its disks."""
        if vm.status == "suspended":
            raise refusals.vm_not_down_for_removal()
        if vm.status == "image_locked":
            raise refusals.vm_image_locked("remove")
        if vm.status not in {"down", "image_illegal"}:
            raise refusals.vm_running("remove")
        for disk in vm.disks:
            image = self._state.image(disk.id)
            if disks:
                self._state.images.pop(disk.id, None)
            elif image is not None:
                self._state.put(self._state.images, image)
        for permission in self._state.permissions_on(vm):
            self._state.drop(self._state.permissions, permission.id)
        leave_groups_and_labels(self._state, vm.id)
        self._running.forget(vm.id)
        self._state.drop_vm(vm.id)
        self._backend.audit_log.log(EventCode.USER_REMOVE_VM_FINISHED, caller, vm=vm)

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
    def _told(vm: Vm) -> tuple[EventCode, ...]:
        """With disks to copy, it begins and ends."""
        if vm.disks:
            return EventCode.USER_ADD_VM_STARTED, EventCode.USER_ADD_VM_FINISHED_SUCCESS
        return (EventCode.USER_ADD_VM,)
