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
from .images import BLANK_TEMPLATE, Template, plain_template, template_of
from .rejections import existing
from .vm_snapshot import check_not_during


class TemplateCommands:
    """Commands on templates; both raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(
        self,
        name: str,
        vm_id: str,
        *,
        description: str = "",
        base: str | None = None,
        version_name: str | None = None,
        caller: Caller = ADMIN,
    ) -> Template:
        """Make a template of a VM, with copies of its disks; or, of a base, its next version."""
        with self._backend.lock:
            vm = self._state.vms.get(vm_id)
            if vm is None:
                raise refusals.vm_not_found("add")
            if vm.status != "down":
                raise image_refusals.template_of_running_vm()
            check_not_during(self._state.vm_snapshots.values(), vm, "add", "Template")
            plain = self._first(name, version_name) if base is None else self._next(base, version_name)
            template_id = self._backend.new_id()
            copies = tuple(
                copied(self._backend, disk, vm.cluster) for disk in self._state.disks_of_its_own(vm)
            )
            template = replace(
                plain,
                id=template_id,
                vm=replace(template_of(vm, template_id, plain.name), disks=copies),
                description=description,
                created=self._backend.now,
            )
            self._state.put(self._state.templates, template)
            words = {"template": template.name}
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
            template = existing(self._state.templates, template_id)
            for disk in template.vm.disks:
                self._state.drop(self._state.images, disk.id)
            self._state.drop(self._state.templates, template_id)
            self._shift(template_id)
            words = {"template": template.name}
            for code in (EventCode.USER_REMOVE_VM_TEMPLATE, EventCode.USER_REMOVE_VM_TEMPLATE_FINISHED):
                self._backend.audit_log.log(code, caller, words=words)

    def _first(self, name: str, version_name: str | None) -> Template:
        if any(known.name == name for known in self._state.templates.values()):
            raise image_refusals.template_name_used()
        plain = plain_template("", name)
        return replace(plain, version_name=version_name or plain.version_name)

    def _next(self, base_id: str, version_name: str | None) -> Template:
        """Give the next version of a base, which has the name of that."""
        base = self._state.template(base_id)
        if base is None:
            raise image_refusals.template_not_found()
        if base.base is not None:
            raise image_refusals.template_no_base()
        if base_id == BLANK_TEMPLATE:
            raise image_refusals.template_blank_has_no_versions()
        numbers = [known.version for known in self._state.templates.values() if known.base == base_id]
        number = max([base.version, *numbers]) + 1
        return replace(plain_template("", base.name), base=base_id, version=number, version_name=version_name)

    def _shift(self, base_id: str) -> None:
        """Let the first version that is left be the base of the others, where their base is gone."""
        left = sorted(
            (known for known in self._state.templates.values() if known.base == base_id),
            key=lambda known: known.version,
        )
        for known in left:
            new = None if known is left[0] else left[0].id
            self._state.put(self._state.templates, replace(known, base=new))
