"""Instance types: added and removed. A VM that has one keeps its hardware whatever becomes of the type.

Source: the engine's AddVmTemplateCommand and RemoveVmTemplateCommand, for which they are templates.
"""

from __future__ import annotations

from msgspec.structs import replace

from .backend import Backend
from .entities import ADMIN, Caller
from .event_codes import EventCode
from .instance_type import InstanceType
from .refusals import conflict
from .rejections import existing


class InstanceTypeCommands:
    """Commands on instance types; both raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(self, wanted: InstanceType, *, caller: Caller = ADMIN) -> InstanceType:
        """Add an instance type, whose id it gets here."""
        with self._backend.lock:
            if any(known.name == wanted.name for known in self._state.instance_types.values()):
                raise conflict(
                    "ACTION_TYPE_FAILED_NAME_ALREADY_USED",
                    "Cannot add Instance Type."
                    " The Instance Type name is already in use, please choose a unique name and try again.",
                )
            added = replace(wanted, id=self._backend.new_id())
            self._state.put(self._state.instance_types, added)
            words = {"template": added.name}
            self._backend.audit_log.log(EventCode.USER_ADD_VM_TEMPLATE_SUCCESS, caller, words=words)
            return added

    def remove(self, type_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove an instance type, which VMs lose."""
        with self._backend.lock:
            gone = existing(self._state.instance_types, type_id)
            for vm in tuple(self._state.vms.values()):
                if vm.instance_type == type_id:
                    self._state.put_vm(replace(vm, instance_type=None))
            self._state.drop(self._state.instance_types, type_id)
            words = {"template": gone.name}
            for code in (EventCode.USER_REMOVE_VM_TEMPLATE, EventCode.USER_REMOVE_VM_TEMPLATE_FINISHED):
                self._backend.audit_log.log(code, caller, words=words)
