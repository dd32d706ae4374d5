"""Disks of no content: added, changed and removed, at once. What is written to them is nobody's to ask.

Source: the engine's AddDiskCommand, UpdateDiskCommand and RemoveDiskCommand.
"""

from __future__ import annotations

from msgspec.structs import replace

from . import disk_rules, image_refusals, storage_domains
from .backend import Backend
from .entities import ADMIN, Caller
from .event_codes import EventCode, EventType
from .images import DiskEdit, DiskImage
from .rejections import NotFound


class DiskCommands:
    """Commands on disks, whether attached or not; all raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(self, edit: DiskEdit, *, caller: Caller = ADMIN) -> DiskImage:
        """Add a disk that is attached to nothing."""
        with self._backend.lock:
            disk_id = self._backend.new_id()
            disk = edit.applied(DiskImage(id=disk_id, name=disk_id))
            disk_rules.check_added(disk)
            self._state.put(self._state.images, disk)
            self._done(f"Adding Disk {disk.name}", caller)
            self._log(EventCode.USER_ADD_DISK_FINISHED_SUCCESS, disk, caller)
            return disk

    def edit(self, disk_id: str, edit: DiskEdit, *, caller: Caller = ADMIN) -> DiskImage:
        """Change a disk, which can grow but not shrink."""
        with self._backend.lock:
            before = self._known(disk_id)
            disk = edit.applied(before)
            disk_rules.check_changed(self._state, before, disk)
            self._state.put(self._state.images, disk)
            self._done(f"Updating Disk {disk.name}", caller)
            self._log(EventCode.USER_UPDATE_DISK, disk, caller)
            return disk

    def remove(self, disk_id: str, *, caller: Caller = ADMIN) -> None:
        """Remove a disk, and detach it; not from a template, nor while a VM that is not down sees it."""
        with self._backend.lock:
            disk = self._known(disk_id)
            for vm in self._state.disk_owners(disk_id):
                if vm.status != "down" and disk_rules.sees(vm, disk_id):
                    raise image_refusals.disk_changed_in_use("remove")
            if self._state.template_of_disk(disk_id) is not None:
                raise image_refusals.disk_of_template()
            (domain, *_) = storage_domains.of_disk(disk, storage_domains.within_reach(self._state, disk_id))
            for vm in self._state.disk_owners(disk_id):
                self._state.put_vm(replace(vm, disks=tuple(one for one in vm.disks if one.id != disk_id)))
            self._state.images.pop(disk_id, None)
            self._log(EventCode.USER_FINISHED_REMOVE_DISK, disk, caller, domain=domain.name)

    def _known(self, disk_id: str) -> DiskImage:
        disk = self._state.image(disk_id)
        if disk is None:
            raise NotFound(disk_id)
        return disk

    def _done(self, description: str, caller: Caller) -> None:
        """Leave a job behind that clients wait for."""
        self._backend.jobs.end(self._backend.jobs.start(description, caller), "finished")

    def _log(self, code: EventType, disk: DiskImage, caller: Caller, **words: str) -> None:
        self._backend.audit_log.log(code, caller, words={"disk": disk.name} | words)
