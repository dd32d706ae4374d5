"""Disks of no content: added, changed and removed, at once. What is written to them is nobody's to ask.

Source: the engine's AddDiskCommand, UpdateDiskCommand and RemoveDiskCommand.
"""

from __future__ import annotations

from msgspec.structs import replace

from . import image_refusals
from .backend import Backend
from .entities import ADMIN, Caller
from .event_codes import EventCode
from .images import DiskEdit, DiskImage
from .rejections import NotFound

#: The name of each data center's one storage domain.
STORAGE_DOMAIN = "data"


class DiskCommands:
    """Commands on disks, whether attached or not; all raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(self, edit: DiskEdit, *, caller: Caller = ADMIN) -> DiskImage:
        """Add a disk that is attached to nothing."""
        with self._backend.lock:
            disk_id = self._backend.new_id()
            disk = edit.applied(DiskImage(id=disk_id, name=disk_id, active=False))
            self._state.put(self._state.images, disk)
            self._done(f"Adding Disk {disk.name}", caller)
            self._log(EventCode.USER_ADD_DISK_FINISHED_SUCCESS, disk, caller)
            return disk

    def edit(self, disk_id: str, edit: DiskEdit, *, caller: Caller = ADMIN) -> DiskImage:
        """Change a disk, which can grow but not shrink."""
        with self._backend.lock:
            before = self._known(disk_id)
            disk = edit.applied(before)
            if disk.size < before.size:
                raise image_refusals.disk_shrunk()
            self._state.put(self._state.images, disk)
            self._done(f"Updating Disk {disk.name}", caller)
            self._log(EventCode.USER_UPDATE_DISK, disk, caller)
            return disk

    def remove(self, disk_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a disk, and detach it; not from a template, nor while a VM that is not down sees it."""
        with self._backend.lock:
            disk = self._known(disk_id)
            for template in self._state.templates.values():
                if any(one.id == disk_id for one in template.vm.disks):
                    raise image_refusals.disk_of_template(template.name)
            for vm in self._state.disk_owners(disk_id):
                if vm.status != "down" and disk.active:
                    raise image_refusals.disk_plugged(disk.name, vm.name)
                self._state.put_vm(replace(vm, disks=tuple(one for one in vm.disks if one.id != disk_id)))
            self._state.images.pop(disk_id, None)
            self._log(EventCode.USER_FINISHED_REMOVE_DISK, disk, caller)

    def _known(self, disk_id: str) -> DiskImage:
        disk = self._state.image(disk_id)
        if disk is None:
            raise NotFound(disk_id)
        return disk

    def _done(self, description: str, caller: Caller) -> None:
        """Leave a job behind that clients wait for."""
        self._backend.jobs.end(self._backend.jobs.start(description, caller), "finished")

    def _log(self, code: EventCode, disk: DiskImage, caller: Caller) -> None:
        self._backend.audit_log.log(code, caller, words={"disk": disk.name, "domain": STORAGE_DOMAIN})
