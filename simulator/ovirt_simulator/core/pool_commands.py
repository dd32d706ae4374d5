"""VM pools: made with their VMs, enlarged, and removed with them; some of their VMs the engine keeps running.

Source: the engine's AddVmPoolCommand, UpdateVmPoolCommand, RemoveVmPoolCommand, RemoveVmFromPoolCommand and
VmPoolMonitor. Nobody takes a VM of a pool here.
"""

from __future__ import annotations

from msgspec.structs import replace

from .backend import Backend
from .entities import ADMIN, SYSTEM, Caller, Job, Vm
from .event_codes import EventCode, EventType
from .images import BLANK_TEMPLATE
from .refusals import bad_parameters, conflict
from .rejections import NotFound, Rejected, existing
from .vm_commands import VmCommands
from .vm_creation import NewVm
from .vm_edit import VmEdit
from .vm_pool import VmPool

#: How many VMs of a pool are started at once.
_BATCH = 5


class PoolCommands:
    """Commands on VM pools; all raise `Rejected` or `NotFound`."""

    def __init__(self, backend: Backend, vms: VmCommands) -> None:
        self._backend = backend
        self._state = backend.state
        self._vms = vms

    def add(self, pool: VmPool, size: int, *, caller: Caller = ADMIN) -> VmPool:
        """Make a pool, whose id it gets here, with this many VMs."""
        with self._backend.lock:
            if pool.cluster not in self._state.clusters or self._state.template(pool.template) is None:
                raise NotFound(pool.template if pool.cluster in self._state.clusters else pool.cluster)
            if any(known.name == pool.name for known in self._state.vm_pools.values()):
                raise conflict(
                    "ACTION_TYPE_FAILED_NAME_ALREADY_USED",
                    "Cannot create VM-Pool."
                    " The VM-Pool name is already in use, please choose a unique name and try again.",
                )
            if pool.template == BLANK_TEMPLATE:
                raise conflict(
                    "VM_POOL_CANNOT_CREATE_FROM_BLANK_TEMPLATE",
                    "VM-Pool must be based on  non-blank Template.",
                )
            if size < 1:
                raise bad_parameters("VM_POOL_CANNOT_CREATE_WITH_NO_VMS", "Cannot create Pool with 0 VMs")
            _check_prestarted(pool, size, "create")
            pool = replace(pool, id=self._backend.new_id())
            self._state.put(self._state.vm_pools, pool)
            self._enlarge(pool, size, caller)
            self._log(EventCode.USER_ADD_VM_POOL_WITH_VMS, pool, caller, count=size)
            return pool

    def edit(self, pool: VmPool, size: int | None, *, caller: Caller = ADMIN) -> VmPool:
        """Put this in the place of the pool with the same id; it can grow, but not shrink."""
        with self._backend.lock:
            before = self._known(pool.id)
            present = len(self._members(pool.id))
            wanted = present if size is None else size
            for changed, key, text in (
                (pool.name != before.name, "NAME", "Cannot change VM-Pool name."),
                (pool.type != before.type, "TYPE", "Cannot change VM-Pool type."),
                (
                    pool.stateful != before.stateful,
                    "STATEFUL_OPTION",
                    "Cannot change VM-Pool stateful option.",
                ),
            ):
                if changed:
                    raise bad_parameters(f"VM_POOL_CANNOT_CHANGE_POOL_{key}", text)
            if wanted < present:
                raise bad_parameters(
                    "VM_POOL_CANNOT_DECREASE_VMS_FROM_POOL", "Cannot decrease VMs from VM-Pool."
                )
            _check_prestarted(pool, wanted, "edit")
            self._state.put(self._state.vm_pools, pool)
            self._enlarge(pool, wanted - present, caller)
            self._log(EventCode.USER_UPDATE_VM_POOL, pool, caller)
            return pool

    def remove(self, pool_id: str, *, caller: Caller = ADMIN) -> Job:
        """Remove a pool with its VMs, as soon as those that run are stopped."""
        with self._backend.lock:
            pool = self._known(pool_id)
            self._state.put(self._state.vm_pools, replace(pool, prestarted=0))
            job = self._backend.jobs.start(f"Removing VM-Pool {pool.name}", caller)
            for vm in self._members(pool_id):
                if vm.runs:
                    self._vms.stop(vm.id, caller=caller)
            self._remove_what_is_down(pool, job, caller)
            return job

    def detach(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Take a VM that is down out of its pool; with the last one the pool goes."""
        with self._backend.lock:
            vm = existing(self._state.vms, vm_id)
            if vm.pool is None:
                raise conflict(
                    "VM_POOL_CANNOT_DETACH_VM_NOT_ATTACHED_TO_POOL",
                    "Cannot detach VM from pool. VM is not attached to the VM-Pool.",
                )
            if vm.runs:
                raise conflict(
                    "VM_POOL_CANNOT_REMOVE_RUNNING_VM_FROM_POOL",
                    "Cannot detach VM from VM-Pool. VM is running.",
                )
            pool = self._known(vm.pool)
            self._state.put_vm(replace(vm, pool=None))
            self._backend.audit_log.log(
                EventCode.USER_REMOVE_VM_FROM_POOL, caller, vm=vm, words={"pool": pool.name}
            )
            if not self._members(pool.id):
                self._state.drop(self._state.vm_pools, pool.id)
            job = self._backend.jobs.start(f"Detaching VM {vm.name} from VM-Pool {pool.name}", caller)
            self._backend.jobs.end(job, "finished")
            return job

    def prestart(self) -> None:
        """Start VMs of pools that keep more of them running than run; called without the lock."""
        with self._backend.lock:
            missing = [
                vm.id
                for pool in self._state.vm_pools.values()
                for vm in self._idle(pool)[: min(_BATCH, self._lacking(pool))]
            ]
        for vm_id in missing:
            try:
                self._vms.start(vm_id, caller=SYSTEM)
            except Rejected:
                continue

    def _idle(self, pool: VmPool) -> list[Vm]:
        return [vm for vm in self._members(pool.id) if vm.status == "down"]

    def _lacking(self, pool: VmPool) -> int:
        return max(0, pool.prestarted - sum(vm.status != "down" for vm in self._members(pool.id)))

    def _enlarge(self, pool: VmPool, count: int, caller: Caller) -> None:
        """Add VMs, numbered from the first number that is free."""
        names, number = {vm.name for vm in self._state.vms.values()}, 0
        for _ in range(count):
            number += 1
            while f"{pool.name}-{number}" in names:
                number += 1
            edit = VmEdit(name=f"{pool.name}-{number}")
            vm = self._vms.create(
                NewVm(template=pool.template, cluster=pool.cluster, edit=edit), caller=caller
            )
            self._state.put_vm(replace(vm, pool=pool.id))

    def _remove_what_is_down(self, pool: VmPool, job: Job, caller: Caller) -> None:
        for vm in self._members(pool.id):
            if vm.status == "down":
                self._state.put_vm(replace(vm, pool=None))
                self._vms.remove(vm.id, caller=caller)
        if self._members(pool.id):
            seconds = self._backend.settings.refresh_seconds
            self._backend.after(seconds, lambda: self._remove_what_is_down(pool, job, caller))
            return
        self._state.drop(self._state.vm_pools, pool.id)
        self._log(EventCode.USER_REMOVE_VM_POOL, pool, caller)
        self._backend.jobs.end(job, "finished")

    def _members(self, pool_id: str) -> list[Vm]:
        return [vm for vm in self._state.vms.values() if vm.pool == pool_id]

    def _known(self, pool_id: str) -> VmPool:
        return existing(self._state.vm_pools, pool_id)

    def _log(self, code: EventType, pool: VmPool, caller: Caller, **words: object) -> None:
        self._backend.audit_log.log(code, caller, words={"pool": pool.name, **words})


def _check_prestarted(pool: VmPool, size: int, action: str) -> None:
    if pool.prestarted > size:
        raise conflict(
            "ACTION_TYPE_FAILED_PRESTARTED_VMS_CANNOT_EXCEED_VMS_COUNT",
            f"Cannot {action} VM-Pool. Number of Prestarted VMs cannot exceed the number of VMs in the Pool.",
        )
