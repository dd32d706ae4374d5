"""What somebody who sits before a VM has: its CD-ROM, and its graphics consoles, which show nothing.

Source: the engine's ChangeDiskCommand, AddGraphicsAndVideoDevicesCommand and SetVmTicketCommand.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from . import refusals
from .backend import Backend
from .entities import ADMIN, Caller, Job, Vm
from .event_codes import EventCode
from .rejections import existing

#: Statuses in which a CD can be changed at once, or a console opened.
_SEEN = {"up", "powering_up", "reboot_in_progress", "migrating", "paused", "powering_down", "wait_for_launch"}


class ConsoleCommands:
    """Commands on VMs; all raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def change_cd(self, vm_id: str, disk_id: str, *, now: bool, caller: Caller = ADMIN) -> None:
        """Put a disk, or none, into the CD-ROM: for as long as the VM runs, or for its next starts."""
        with self._backend.lock:
            vm = self._vm(vm_id)
            disk = self._state.image(disk_id) if disk_id else None
            if disk_id and disk is None:
                raise refusals.bad_parameters("ERROR_CANNOT_FIND_ISO_IMAGE_PATH", "Invalid ISO image path")
            if not now:
                self._particulars(vm, cdrom=disk_id)
                self._backend.audit_log.log(EventCode.USER_UPDATE_VM, caller, vm=vm)
                return
            if vm.status not in _SEEN:
                raise refusals.vm_status_illegal("Change CD", vm.engine_status)
            self._state.put_vm(replace(vm, cdrom_now=disk_id))
            code = EventCode.USER_CHANGE_DISK_VM if disk else EventCode.USER_EJECT_VM_DISK
            self._backend.audit_log.log(code, caller, vm=vm, words={"disk": disk.name if disk else ""})

    def add(self, vm_id: str, protocol: str) -> None:
        """Give a VM a console of this protocol; one that it has stays the only one."""
        with self._backend.lock:
            vm = self._vm(vm_id)
            consoles = dict.fromkeys((*vm.particulars.consoles, protocol))
            self._particulars(vm, consoles=tuple(consoles))

    def remove(self, vm_id: str, protocol: str) -> None:
        with self._backend.lock:
            vm = self._vm(vm_id)
            left = tuple(each for each in vm.particulars.consoles if each != protocol)
            self._particulars(vm, consoles=left)

    def open(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Let somebody in, which an event reports."""
        with self._backend.lock:
            vm = self._vm(vm_id)
            if vm.status not in _SEEN:
                raise refusals.vm_status_illegal("set ticket for", vm.engine_status)
            self._backend.audit_log.log(EventCode.VM_SET_TICKET, caller, vm=vm)
            job = self._backend.jobs.start(f"Setting a Ticket for VM {vm.name}", caller)
            self._backend.jobs.end(job, "finished")
            return job

    def _particulars(self, vm: Vm, **changes: Any) -> None:
        self._state.put_vm(replace(vm, particulars=replace(vm.particulars, **changes)))

    def _vm(self, vm_id: str) -> Vm:
        return existing(self._state.vms, vm_id)
