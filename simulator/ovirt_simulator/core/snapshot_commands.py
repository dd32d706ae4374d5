"""Snapshots of VMs: made, removed, and gone back to.

Source: the engine's CreateSnapshotForVmCommand, RemoveSnapshotCommand, TryBackToAllSnapshotsOfVmCommand and
RestoreAllSnapshotsCommand.
"""

from __future__ import annotations

from msgspec.structs import replace

from .backend import Backend
from .entities import ADMIN, Caller, Job, Vm
from .event_codes import EventCode, EventType
from .refusals import conflict, vm_not_found
from .rejections import NotFound
from .vm_snapshot import VmSnapshot, active_id, check_not_during

_LOCKED = {"image_locked"}
_MERGEABLE = {"up", "down", "paused"}
#: What a VM has of its snapshot again; its name, its cluster and where it may run stay as they are.
_RESTORED = (
    "memory_mb",
    "guaranteed_mb",
    "vcpus",
    "threads_per_core",
    "io_threads",
    "video_mb",
    "ha",
    "custom_properties",
    "particulars",
    "nics",
    "instance_type",
)


class SnapshotCommands:
    """Commands on VMs; all raise `Rejected`, and `NotFound` for a snapshot that is not there."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._state = backend.state

    def add(self, vm_id: str, description: str, *, memory: bool = True, caller: Caller = ADMIN) -> VmSnapshot:
        """Make a snapshot, which is locked for a while; of a VM that runs, with its memory."""
        with self._backend.lock:
            vm = self._vm(vm_id)
            if vm.status in _LOCKED:
                raise conflict(
                    "ACTION_TYPE_FAILED_VM_IS_LOCKED",
                    "Cannot create Snapshot: VM is locked. Please try again in a few minutes.",
                )
            check_not_during(self._state.vm_snapshots.values(), vm, "create", "Snapshot")
            if vm.status == "migrating":
                raise conflict(
                    "ACTION_TYPE_FAILED_MIGRATION_IN_PROGRESS",
                    "Cannot create Snapshot. VM migration is in progress",
                )
            snapshot = VmSnapshot(
                id=self._backend.new_id(),
                description=description,
                created=self._backend.now,
                vm=replace(vm, disks=self._state.disks_of_its_own(vm)),
                memory=memory and vm.runs,
                status="locked",
            )
            self._state.put(self._state.vm_snapshots, snapshot)
            self._log(EventCode.USER_CREATE_SNAPSHOT, snapshot, caller)
            job = self._backend.jobs.start(f"Creating VM Snapshot {description} for VM {vm.name}", caller)
            seconds = self._backend.settings.snapshot_seconds
            self._backend.after(seconds, lambda: self._made(snapshot, job, caller))
            return snapshot

    def remove(self, vm_id: str, snapshot_id: str, *, caller: Caller = ADMIN) -> Job:
        """Remove a snapshot, which takes a while; the VM stays as it is. The active one is none of these."""
        with self._backend.lock:
            if snapshot_id == active_id(vm_id):
                raise conflict(
                    "ACTION_TYPE_FAILED_VM_SNAPSHOT_TYPE_NOT_REGULAR",
                    "Cannot remove Snapshot. The operation is only allowed for regular snapshots.",
                )
            vm, snapshot = self._vm(vm_id), self._known(vm_id, snapshot_id)
            check_not_during(self._state.vm_snapshots.values(), vm, "remove", "Snapshot")
            if vm.status not in _MERGEABLE:
                raise conflict(
                    "ACTION_TYPE_FAILED_VM_IS_NOT_DOWN_OR_UP",
                    f"Cannot remove Snapshot. VM {vm.name} must be in status Down, Up or Paused.",
                )
            self._state.put(self._state.vm_snapshots, replace(snapshot, status="locked"))
            self._log(EventCode.USER_REMOVE_SNAPSHOT, snapshot, caller)
            job = self._backend.jobs.start(
                f"Removing Snapshot {snapshot.description} of VM {vm.name}", caller
            )
            seconds = self._backend.settings.snapshot_seconds
            self._backend.after(seconds, lambda: self._removed(snapshot, job, caller))
            return job

    def restore(self, vm_id: str, snapshot_id: str, *, caller: Caller = ADMIN) -> Job:
        """Let a VM that is down be as it was, at once; later snapshots are lost."""
        with self._backend.lock:
            vm, snapshot = self._vm(vm_id), self._known(vm_id, snapshot_id)
            check_not_during(self._state.vm_snapshots.values(), vm, "preview", "Snapshot")
            if vm.status != "down":
                raise conflict(
                    "ACTION_TYPE_FAILED_VM_IS_NOT_DOWN",
                    "Cannot preview Snapshot. At least one of the VMs is not down.",
                )
            held = tuple(disk for disk in snapshot.vm.disks if self._state.image(disk.id) is not None)
            own = self._state.disks_of_its_own(vm)
            disks = (*held, *(disk for disk in vm.disks if disk not in own))
            before = {name: getattr(snapshot.vm, name) for name in _RESTORED}
            self._state.put_vm(replace(vm, disks=disks, **before))
            for later in tuple(self._state.vm_snapshots.values()):
                if later.vm.id == vm_id and later.created > snapshot.created:
                    self._state.drop(self._state.vm_snapshots, later.id)
            for code in (
                EventCode.USER_TRY_BACK_TO_SNAPSHOT,
                EventCode.USER_TRY_BACK_TO_SNAPSHOT_FINISH_SUCCESS,
                EventCode.USER_COMMIT_RESTORE_FROM_SNAPSHOT_START,
                EventCode.USER_COMMIT_RESTORE_FROM_SNAPSHOT_FINISH_SUCCESS,
            ):
                self._log(code, snapshot, caller)
            job = self._backend.jobs.start(f"Restoring VM {vm.name} Snapshot", caller)
            self._backend.jobs.end(job, "finished")
            return job

    def _made(self, snapshot: VmSnapshot, job: Job, caller: Caller) -> None:
        self._state.put(self._state.vm_snapshots, replace(snapshot, status="ok"))
        self._log(EventCode.USER_CREATE_SNAPSHOT_FINISHED_SUCCESS, snapshot, caller)
        self._backend.jobs.end(job, "finished")

    def _removed(self, snapshot: VmSnapshot, job: Job, caller: Caller) -> None:
        self._state.drop(self._state.vm_snapshots, snapshot.id)
        self._log(EventCode.USER_REMOVE_SNAPSHOT_FINISHED_SUCCESS, snapshot, caller)
        self._backend.jobs.end(job, "finished")

    def _vm(self, vm_id: str) -> Vm:
        vm = self._state.vms.get(vm_id)
        if vm is None:
            raise vm_not_found("create")
        return vm

    def _known(self, vm_id: str, snapshot_id: str) -> VmSnapshot:
        snapshot = self._state.vm_snapshots.get(snapshot_id)
        if snapshot is None or snapshot.vm.id != vm_id:
            raise NotFound(snapshot_id)
        return snapshot

    def _log(self, code: EventType, snapshot: VmSnapshot, caller: Caller) -> None:
        vm = self._state.vms.get(snapshot.vm.id, snapshot.vm)
        self._backend.audit_log.log(code, caller, vm=vm, words={"snapshot": snapshot.description})
