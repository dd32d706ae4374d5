"""Templates: made of a VM that is down, and removed.

Source: the engine's AddVmTemplateCommand and RemoveVmTemplateCommand. Copying disks is done at once.
"""

from __future__ import annotations

from msgspec.structs import replace

from . import image_refusals, refusals
from .backend import Backend
from .disk_copies import copied
from .entities import ADMIN, Caller
from .event_codes import EventCode
from .images import BLANK_TEMPLATE, Template
from .rejections import NotFound


class TemplateCommands:
    """Commands on templates; both raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(self, name: str, vm_id: str, *, description: str = "", caller: Caller = ADMIN) -> Template:
        """Make a template of a VM, with copies of its disks."""
        with self._backend.lock:
            vm = self._state.vms.get(vm_id)
            if vm is None:
                raise refusals.vm_not_found("add")
            if vm.status != "down":
                raise image_refusals.template_of_running_vm()
            if any(known.name == name for known in self._state.templates.values()):
                raise image_refusals.template_name_used()
            template_id = self._backend.new_id()
            copies = tuple(copied(self._backend, disk) for disk in vm.disks)
            plain = replace(
                vm,
                id=template_id,
                name=name,
                template=None,
                disks=copies,
                nics=(),
                tags=(),
                owner=None,
                pinned_hosts=(),
                stopped=None,
                stop_reason=None,
            )
            template = Template(
                id=template_id, name=name, vm=plain, description=description, created=self._backend.now
            )
            self._state.put(self._state.templates, template)
            words = {"template": name}
            for code in (EventCode.USER_ADD_VM_TEMPLATE, EventCode.USER_ADD_VM_TEMPLATE_FINISHED_SUCCESS):
                self._backend.audit_log.log(code, caller, vm=vm, words=words)
            return template

    def remove(self, template_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a template with its disks; not while VMs depend on it."""
        with self._backend.lock:
            if template_id == BLANK_TEMPLATE:
                raise image_refusals.template_blank()
            users = [vm.name for vm in self._state.vms.values() if vm.template == template_id]
            if users:
                raise image_refusals.template_used(users)
            template = self._state.templates.get(template_id)
            if template is None:
                raise NotFound(template_id)
            for disk in template.vm.disks:
                self._state.drop(self._state.images, disk.id)
            self._state.drop(self._state.templates, template_id)
            words = {"template": template.name}
            for code in (EventCode.USER_REMOVE_VM_TEMPLATE, EventCode.USER_REMOVE_VM_TEMPLATE_FINISHED):
                self._backend.audit_log.log(code, caller, words=words)
