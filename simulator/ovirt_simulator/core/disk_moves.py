"""Disks that are copied or moved to another storage domain of their data center, at once.

Source: the engine's MoveOrCopyDiskCommand and MoveDiskCommand.
"""

from __future__ import annotations

from msgspec.structs import replace

from . import image_refusals, storage_domains
from .backend import Backend
from .disk_rules import sees
from .entities import ADMIN, Caller, Job
from .event_codes import EventCode, EventType
from .images import DiskImage
from .rejections import NotFound
from .storage_domain import StorageDomain

_COPIED = EventCode.USER_COPIED_DISK, EventCode.USER_COPIED_DISK_FINISHED_SUCCESS
_MOVED = EventCode.USER_MOVED_DISK, EventCode.USER_MOVED_DISK_FINISHED_SUCCESS


class DiskMoves:
    """Both commands raise `Rejected` and `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def copy(self, disk_id: str, domain_id: str, *, name: str | None = None, caller: Caller = ADMIN) -> Job:
        """Put a disk on one more storage domain: one of a template itself, of others a new disk like it."""
        with self._backend.lock:
            disk = self._known(disk_id)
            target = self._domain(disk, domain_id, "copy")
            for vm in self._state.disk_owners(disk_id):
                if vm.status != "down" and sees(vm, disk_id):
                    raise image_refusals.disk_plugged(disk.name, vm.name)
            sources = self._on(disk)
            if self._state.template_of_disk(disk_id) is None:
                copy = replace(
                    disk,
                    id=self._backend.new_id(),
                    name=name or disk.name,
                    domains=(target.id,),
                )
            elif target in sources:
                raise image_refusals.disk_of_template_copied_already()
            else:
                copy = replace(disk, domains=tuple(one.id for one in (*sources, target)))
            self._state.put(self._state.images, copy)
            return self._done("Copying", copy, sources[0], target, _COPIED, caller)

    def move(self, disk_id: str, domain_id: str, *, caller: Caller = ADMIN) -> Job:
        """Take a disk to another storage domain, under a running VM as well; not one of a template."""
        with self._backend.lock:
            disk = self._known(disk_id)
            (source, *_), target = self._on(disk), self._domain(disk, domain_id, "move")
            if self._state.template_of_disk(disk_id) is not None:
                raise image_refusals.disk_of_template_moved(disk.name)
            if source == target:
                raise image_refusals.disk_moved_nowhere()
            self._state.put(self._state.images, replace(disk, domains=(target.id,)))
            return self._done("Moving", disk, source, target, _MOVED, caller)

    def _known(self, disk_id: str) -> DiskImage:
        disk = self._state.image(disk_id)
        if disk is None:
            raise NotFound(disk_id)
        return disk

    def _on(self, disk: DiskImage) -> list[StorageDomain]:
        return storage_domains.of_disk(disk, storage_domains.within_reach(self._state, disk.id))

    def _domain(self, disk: DiskImage, domain_id: str, action: str) -> StorageDomain:
        for domain in storage_domains.within_reach(self._state, disk.id):
            if domain.id == domain_id:
                return domain
        raise image_refusals.storage_domain_unknown(action)

    def _done(
        self,
        action: str,
        disk: DiskImage,
        source: StorageDomain,
        target: StorageDomain,
        codes: tuple[EventType, EventType],
        caller: Caller,
    ) -> Job:
        for code in codes:
            self._backend.audit_log.log(code, caller, words={"disk": disk.name, "domain": target.name})
        job = self._backend.jobs.start(
            f"{action} Disk {disk.name} from {source.name} to {target.name}", caller
        )
        self._backend.jobs.end(job, "finished")
        return job
