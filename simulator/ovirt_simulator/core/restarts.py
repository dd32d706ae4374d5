"""Highly available VMs that went down without anyone asking come back on another host."""

from __future__ import annotations

from ..scheduler.placing import Scheduler
from ..scheduler.request import Request
from .backend import Backend
from .entities import SYSTEM
from .event_codes import EventCode
from .rejections import Rejected
from .running import Running


class Restarts:
    """Tries again and again, as the engine does, until a host takes the VM or someone else has started it."""

    def __init__(self, backend: Backend, running: Running, scheduler: Scheduler) -> None:
        self._backend = backend
        self._running = running
        self._scheduler = scheduler

    def restart(self, vm_id: str) -> None:
        """Bring a VM back if it is highly available; the caller holds the lock."""
        if self._backend.state.vms[vm_id].ha:
            self.begin(vm_id)

    def begin(self, vm_id: str) -> None:
        """Bring a VM back whatever it is; the caller holds the lock."""
        self._backend.unlocked(0.0, lambda: self._try(vm_id))

    def _try(self, vm_id: str) -> None:
        with self._backend.lock:
            if not self._is_waiting(vm_id):
                return
        try:
            self._scheduler.schedule(Request(vm_ids=(vm_id,)), lambda host_id: self._place(vm_id, host_id))
        except Rejected:
            with self._backend.lock:
                vm = self._backend.state.vms[vm_id]
                self._backend.audit_log.log(EventCode.VDS_INITIATED_RUN_VM_FAILED, SYSTEM, vm=vm)
            self._backend.unlocked(self._backend.settings.retry_seconds, lambda: self._try(vm_id))

    def _place(self, vm_id: str, host_id: str) -> None:
        if self._is_waiting(vm_id):
            state = self._backend.state
            self._running.launch(vm_id, host_id, None, SYSTEM)
            self._backend.audit_log.log(
                EventCode.VDS_INITIATED_RUN_VM, SYSTEM, vm=state.vms[vm_id], host=state.hosts[host_id]
            )

    def _is_waiting(self, vm_id: str) -> bool:
        return self._backend.state.vms[vm_id].status == "down" and vm_id not in self._backend.vm_locks
