"""Hosts that crash: what stops at once, what the engine does when it notices, and how they come back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from .backend import Backend
from .entities import SYSTEM
from .event_codes import EventCode
from .migrations import Migrations
from .restarts import Restarts
from .running import Running


class Outage:
    """One crash of a host."""

    #: The host is fenced: its VMs are known to be down.
    fenced = False
    detected = False


Step = Callable[[str, Outage], None]


class Outages:
    """All crashed hosts; the caller holds the lock.

    A crashed host's VMs stand still at once. The engine sees it some seconds later (event 12: the host is
    non-responsive, its VMs are unknown), then fences it: its VMs are down, the highly available ones restart.
    """

    def __init__(
        self, backend: Backend, running: Running, migrations: Migrations, restarts: Restarts
    ) -> None:
        self._backend = backend
        self._state = backend.state
        self._running = running
        self._migrations = migrations
        self._restarts = restarts
        self._outages: dict[str, Outage] = {}

    def fail(self, host_id: str) -> None:
        """Let the host crash; a crashed one stays as it is."""
        if host_id in self._outages:
            return
        outage = self._outages[host_id] = Outage()
        self._backend.failed_hosts.add(host_id)
        settings = self._backend.settings
        fence_seconds = settings.host_detection_seconds + settings.host_fence_seconds
        self._later(host_id, outage, settings.host_detection_seconds, self._detect)
        self._later(host_id, outage, fence_seconds, self._fence)

    def recover(self, host_id: str) -> None:
        """Let the host answer again; what the engine did not declare down is found running."""
        outage = self._outages.pop(host_id, None)
        self._backend.failed_hosts.discard(host_id)
        if outage is not None and outage.detected and not outage.fenced:
            self._set_unknown(host_id)
        self._migrations.answer_again(host_id)
        for vm in self._state.vms_on(host_id):
            if vm.status != "unknown" and self._migrations.get(vm.id) is None:
                self._running.resume(vm)
        host = self._state.hosts[host_id]
        if host.status == "non_responsive":
            self._backend.audit_log.log(EventCode.VDS_DETECTED, SYSTEM, host=host, words={"status": "Up"})
            self._backend.after_event(lambda: self._set_up(host_id))
        self.restore_vms(host_id)

    def restore_vms(self, host_id: str) -> None:
        """Find the host's VMs of unknown status running."""
        host = self._state.hosts[host_id]
        for vm in self._state.vms_on(host_id):
            if vm.status == "unknown":
                course = self._running.begin(vm.id)
                self._backend.audit_log.log(
                    EventCode.VM_STATUS_RESTORED, SYSTEM, vm=vm, host=host, words={"status": "Up"}
                )
                self._running.after_event(vm.id, course, partial(self._set_vm_up, vm.id))

    def _later(self, host_id: str, outage: Outage, seconds: float, step: Step) -> None:
        def action() -> None:
            if self._outages.get(host_id) is outage:
                step(host_id, outage)

        self._backend.after(seconds, action)

    def _detect(self, host_id: str, outage: Outage) -> None:
        """Notice the crash, unless the host is in maintenance: then the engine does not look."""
        host = self._state.hosts[host_id]
        if host.status == "maintenance":
            return
        outage.detected = True
        self._backend.audit_log.log(EventCode.VDS_FAILURE, SYSTEM, host=host)
        self._end_migrations(host_id)
        for vm in self._state.vms_on(host_id):
            self._running.begin(vm.id, ended="failed")
            self._backend.audit_log.log(EventCode.VM_SET_TO_UNKNOWN_STATUS, SYSTEM, vm=vm, host=host)

        def set_unknown() -> None:
            if self._outages.get(host_id) is outage and not outage.fenced:
                self._set_unknown(host_id)

        self._backend.after_event(set_unknown)

    def _set_unknown(self, host_id: str) -> None:
        self._set_status(host_id, "non_responsive")
        self._end_migrations(host_id)
        for vm in self._state.vms_on(host_id):
            self._running.begin(vm.id, ended="failed")
            self._state.put_vm(replace(vm, status="unknown", migrating_to=None, handed_over=False))

    def _end_migrations(self, host_id: str) -> None:
        for migration in self._migrations.of_host(host_id):
            if self._state.vms[migration.vm_id].host == host_id:
                self._migrations.abort(migration, "Host is non-responsive")
            else:
                self._migrations.fail(migration, " due to an Error: Target host is non-responsive")

    def _fence(self, host_id: str, outage: Outage) -> None:
        if not outage.detected:
            return
        outage.fenced = True
        host = self._state.hosts[host_id]
        self._backend.audit_log.log(EventCode.VDS_RECOVER, SYSTEM, host=host)
        self._set_status(host_id, "non_responsive")
        self._end_migrations(host_id)
        for vm in self._state.vms_on(host_id):
            code = EventCode.VM_WAS_SET_DOWN_DUE_TO_HOST_REBOOT_OR_MANUAL_FENCE
            self._backend.audit_log.log(code, SYSTEM, vm=vm, host=host)
            self._running.set_down(vm.id, ended="failed")
            self._restarts.restart(vm.id)

    def _set_up(self, host_id: str) -> None:
        host = self._state.hosts[host_id]
        if host_id not in self._outages and host.status == "non_responsive":
            self._set_status(host_id, "up")

    def _set_vm_up(self, vm_id: str) -> None:
        self._state.put_vm(replace(self._state.vms[vm_id], status="up"))

    def _set_status(self, host_id: str, status: str) -> None:
        self._state.put(self._state.hosts, replace(self._state.hosts[host_id], status=status))
