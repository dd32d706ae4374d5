"""What ends or restarts a VM that runs: stop, shutdown, suspend, reboot, reset.

Source: the engine's StopVmCommandBase, RebootVmCommand, ResetVmCommand and VMStatus.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import refusals
from .audit_log import NO_WORDS
from .backend import Backend
from .entities import ADMIN, Caller, Job, Vm
from .event_codes import EventCode, EventType
from .rejections import Rejected
from .restarts import Restarts
from .running import Running

_REBOOTABLE = {"up", "powering_up"}
_RESETTABLE = {"up", "powering_down", "powering_up", "reboot_in_progress"}
_STOPPABLE = _RESETTABLE | {"wait_for_launch", "paused", "not_responding", "suspended"}
_SAVING_OR_RESTORING = {"saving_state", "restoring_state"}


class PowerCommands:
    """Each returns at once with its job, and raises `Rejected` as the engine refuses."""

    def __init__(self, backend: Backend, running: Running, restarts: Restarts) -> None:
        self._backend = backend
        self._state = backend.state
        self._running = running
        self._restarts = restarts

    def stop(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Power the VM off; one that is down stays so, which an event reports."""
        seconds = self._backend.settings.stop_seconds
        return self._end(vm_id, "stop", EventCode.USER_STOP_VM, seconds, "Stopping", caller)

    def shutdown(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Ask the guest to shut down; one that is down stays so, which an event reports."""
        seconds = self._backend.settings.shutdown_seconds
        code = EventCode.USER_INITIATED_SHUTDOWN_VM
        return self._end(vm_id, "shutdown", code, seconds, "Shutting down", caller)

    def suspend(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Save the VM's memory and free its host."""
        with self._backend.lock:
            vm = self._unlocked_vm(vm_id, "suspend")
            if vm.status in {"down", "unknown", "image_locked", "suspended"}:
                raise refusals.vm_not_running("suspend")
            if vm.status == "migrating":
                raise refusals.migration_in_progress("suspend")
            if vm.status != "up":
                raise refusals.vm_status_illegal("suspend", vm.engine_status)
            self._log(EventCode.USER_SUSPEND_VM, vm, caller)
            job = self._backend.jobs.start(f"Performing Hibernate action on VM {vm.name}", caller)
            self._running.suspend(vm_id, job, caller)
            return job

    def reboot(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Let the guest restart where it is."""
        return self._restart(vm_id, "restart", EventCode.USER_REBOOT_VM, _REBOOTABLE, caller)

    def reset(self, vm_id: str, *, caller: Caller = ADMIN) -> Job:
        """Restart the VM where it is, whatever the guest says."""
        return self._restart(vm_id, "reset", EventCode.USER_RESET_VM, _RESETTABLE, caller)

    def _end(
        self, vm_id: str, action: str, code: EventType, seconds: float, description: str, caller: Caller
    ) -> Job:
        with self._backend.lock:
            vm = self._unlocked_vm(vm_id, action)
            if vm.status == "down":
                return self._skipped(vm, action, caller)
            self._check_stoppable(vm, action)
            suspended = vm.status == "suspended"
            self._log(EventCode.USER_STOP_SUSPENDED_VM if suspended else code, vm, caller)
            job = self._backend.jobs.start(f"{description} VM {vm.name}", caller)
            self._running.power_down(vm_id, seconds, job, caller)
            return job

    def _skipped(self, vm: Vm, action: str, caller: Caller) -> Job:
        words = {"status": "Down", "action": f"{action.capitalize()} VM"}
        self._log(EventCode.VM_ALREADY_IN_REQUESTED_STATUS, vm, caller, words)
        job = self._backend.jobs.start(f"{action.capitalize()} VM {vm.name}", caller)
        self._backend.jobs.end(job, "finished")
        return job

    def _check_stoppable(self, vm: Vm, action: str) -> None:
        if vm.status == "migrating":
            raise refusals.migration_in_progress(action)
        if vm.status in _SAVING_OR_RESTORING:
            raise refusals.vm_saving_or_restoring(action)
        if vm.status not in _STOPPABLE:
            raise refusals.vm_not_running(action)

    def _restart(self, vm_id: str, action: str, code: EventType, statuses: set[str], caller: Caller) -> Job:
        with self._backend.lock:
            vm = self._unlocked_vm(vm_id, action)
            if vm.status not in statuses:
                raise refusals.vm_status_illegal(action, vm.engine_status)
            self._log(code, vm, caller)
            verb = "Rebooting" if code is EventCode.USER_REBOOT_VM else "Resetting"
            job = self._backend.jobs.start(f"{verb} VM {vm.name}", caller)
            self._running.restart(vm_id, job)
            return job

    def _vm(self, vm_id: str, action: str) -> Vm:
        vm = self._state.vms.get(vm_id)
        if vm is None:
            raise refusals.vm_not_found(action)
        return vm

    def _unlocked_vm(self, vm_id: str, action: str) -> Vm:
        vm = self._vm(vm_id, action)
        if vm_id in self._backend.vm_locks:
            raise Rejected(self._backend.vm_locks[vm_id])
        return vm

    def _log(self, code: EventType, vm: Vm, caller: Caller, words: Mapping[str, object] = NO_WORDS) -> None:
        host = None if vm.host is None else self._state.hosts[vm.host]
        self._backend.audit_log.log(code, caller, vm=vm, host=host, words=words)
