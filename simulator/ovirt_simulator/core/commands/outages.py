"""Hosts that crash, how the engine notices, and highly available VMs, which come back on another host.

Source: the engine's AutoStartVmsRunner and HaAutoStartVmsRunner. VMs of a lower priority wait until those of
a higher one are up, or could not be started for long.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

from ovirt_simulator.core.backend import Backend, Commands, locked
from ovirt_simulator.core.commands.migrations import Migrations
from ovirt_simulator.core.commands.running import Running
from ovirt_simulator.core.entities import SYSTEM, Vm
from ovirt_simulator.core.messages import EventCode, existing
from ovirt_simulator.scheduler.filters import Request
from ovirt_simulator.scheduler.placing import Scheduler

#: Others wait for a VM in one of these statuses.
_COMING_UP = frozenset({"wait_for_launch", "powering_up", "paused", "reboot_in_progress", "migrating"})
_NONE = -1
_NO_ANSWER = frozenset({"connecting", "non_responsive"})


class _Entry:
    """A highly available VM that is to come back."""

    #: Whether it was started, and is not up yet.
    starting = False
    #: Not before this it is tried again.
    not_before: datetime | None = None
    #: How long it has waited for others, and since when it does now.
    blocked = timedelta()
    blocked_since: datetime | None = None


class Restarts(Commands):
    """Tries again and again, as the engine does, until a host takes the VM or someone else has started it."""

    def __init__(self, backend: Backend, running: Running, scheduler: Scheduler) -> None:
        super().__init__(backend)
        self._running = running
        self._scheduler = scheduler
        self._entries: dict[str, _Entry] = {}
        self._due = False

    def restart(self, vm_id: str) -> None:
        """Bring a VM back if it is highly available; the caller holds the lock."""
        if self._state.vms[vm_id].ha:
            self._entries[vm_id] = _Entry()
            self._come_round(0.0)

    def _come_round(self, seconds: float) -> None:
        if not self._due:
            self._due = True
            self._backend.unlocked(seconds, self._round)

    def _round(self) -> None:
        needed = _NONE
        with self._backend.lock:
            self._due = False
            known = self._state.vms
            ordered = sorted(self._entries, key=lambda i: -known[i].ha_priority if i in known else 0)
        for vm_id in ordered:
            needed = max(needed, self._start_if_due(vm_id, needed))
        with self._backend.lock:
            if self._entries:
                self._come_round(self._settings.restart_round_seconds)

    def _start_if_due(self, vm_id: str, needed: int) -> int:
        """Start it if it may; return the priority of which others must be not to wait for it."""
        with self._backend.lock:
            entry, vm = self._entries.get(vm_id), self._state.vms.get(vm_id)
            if entry is None or vm is None or self._is_finished(entry, vm):
                self._entries.pop(vm_id, None)
                return _NONE
            free = vm_id not in self._backend.vm_locks
            may = free and not entry.starting and not self._waits(entry, vm, needed)
        if may:
            self._try_start(vm_id, entry)
        return vm.ha_priority

    def _is_finished(self, entry: _Entry, vm: Vm) -> bool:
        """Whether it need not be started any more: it is up, or a user starts it."""
        return not vm.ha or vm.status not in (_COMING_UP if entry.starting else {"down"})

    def _waits(self, entry: _Entry, vm: Vm, needed: int) -> bool:
        now = self._backend.now
        if entry.not_before is not None and now < entry.not_before:
            return True
        if entry.blocked_since is not None:
            entry.blocked += now - entry.blocked_since
            entry.blocked_since = None
        if entry.blocked > timedelta(seconds=self._settings.restart_blocked_seconds):
            return False
        if vm.ha_priority >= needed:
            return False
        entry.blocked_since = now
        return True

    def _try_start(self, vm_id: str, entry: _Entry) -> None:
        """Ask for a host; that none takes the VM an event reports."""

        def place(host_id: str) -> None:
            if self._state.vms[vm_id].status == "down" and vm_id not in self._backend.vm_locks:
                self._running.launch(vm_id, host_id, None, SYSTEM)
                self._log(EventCode.VDS_INITIATED_RUN_VM, SYSTEM, vm=self._state.vms[vm_id])

        entry.starting = self._scheduler.tries(Request(vm_ids=(vm_id,)), place)
        if not entry.starting:
            with self._backend.lock:
                self._log(EventCode.VDS_INITIATED_RUN_VM_FAILED, SYSTEM, vm=self._state.vms[vm_id])
                entry.not_before = self._backend.now + timedelta(seconds=self._settings.retry_seconds)


class Outage:
    """One crash of a host."""

    #: The host is fenced: its VMs are known to be down.
    fenced = False
    detected = False


class Outages(Commands):
    """All crashed hosts.

    A crashed host's VMs stand still at once. The engine sees it some seconds later (10802: the host is
    `connecting`, its VMs as they were), gives it up after a while (event 12: the host is non-responsive, its
    VMs are unknown), then fences it: its VMs are down, the highly available ones restart.
    """

    def __init__(self, backend: Backend, migrations: Migrations, restarts: Restarts) -> None:
        super().__init__(backend)
        self._running = migrations.running
        self._migrations = migrations
        self._restarts = restarts
        self._outages: dict[str, Outage] = {}

    @locked
    def fail(self, host_id: str) -> None:
        """Let the host crash, unless it has: it stops answering, is fenced, and its HA VMs restart elsewhere.

        Raises `NotFound`.
        """
        existing(self._state.hosts, host_id)
        if host_id in self._outages:
            return
        outage = self._outages[host_id] = Outage()
        self._backend.failed_hosts.add(host_id)
        self._backend.go_through(
            self._lose(host_id, outage), goes_on=lambda: self._outages.get(host_id) is outage
        )

    @locked
    def recover(self, host_id: str) -> None:
        """Let the host answer again; what the engine did not declare down is found running.

        Raises `NotFound`.
        """
        existing(self._state.hosts, host_id)
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
            self._log(EventCode.VDS_DETECTED, SYSTEM, host=host, status="Up")
        if host.status in _NO_ANSWER:
            self._backend.after_event(lambda: self._set_up(host_id))
        self.restore_vms(host_id)

    def restore_vms(self, host_id: str) -> None:
        """Find the host's VMs of unknown status running."""
        host = self._state.hosts[host_id]
        for vm in self._state.vms_on(host_id):
            if vm.status == "unknown":
                course = self._running.begin(vm.id)
                self._log(EventCode.VM_STATUS_RESTORED, SYSTEM, vm=vm, host=host, status="Up")
                course.after_event(partial(self._change_vm, vm.id, status="up"))

    def _lose(self, host_id: str, outage: Outage) -> Iterator[float]:
        """Notice the crash, unless the host is in maintenance: then the engine does not look."""
        yield self._settings.host_detection_seconds
        if self._settings.host_connecting_seconds:
            if self._state.hosts[host_id].status == "up":
                self._log(EventCode.VDS_BROKER_COMMAND_FAILURE, SYSTEM, host=host_id)
                self._change_host(host_id, status="connecting")
            yield self._settings.host_connecting_seconds
        if self._state.hosts[host_id].status == "maintenance":
            return
        outage.detected = True
        self._end_migrations(host_id)
        for vm in self._state.vms_on(host_id):
            self._running.begin(vm.id, ended="failed")
            self._log(EventCode.VM_SET_TO_UNKNOWN_STATUS, SYSTEM, vm=vm, host=host_id)
        self._log(EventCode.VDS_FAILURE, SYSTEM, host=host_id)

        def set_unknown() -> None:
            if self._outages.get(host_id) is outage and not outage.fenced:
                self._set_unknown(host_id)

        self._backend.after_event(set_unknown)
        yield self._settings.host_fence_seconds
        outage.fenced = True
        self._log(EventCode.VDS_RECOVER, SYSTEM, host=host_id)
        self._change_host(host_id, status="non_responsive")
        self._end_migrations(host_id)
        for vm in self._state.vms_on(host_id):
            code = EventCode.VM_WAS_SET_DOWN_DUE_TO_HOST_REBOOT_OR_MANUAL_FENCE
            self._log(code, SYSTEM, vm=vm, host=host_id)
            self._running.leave_host(vm.id, ended="failed")
            self._restarts.restart(vm.id)

    def _set_unknown(self, host_id: str) -> None:
        self._change_host(host_id, status="non_responsive")
        self._end_migrations(host_id)
        for vm in self._state.vms_on(host_id):
            self._running.begin(vm.id, ended="failed")
            self._change_vm(vm.id, status="unknown", migrating_to=None, handed_over=False)

    def _end_migrations(self, host_id: str) -> None:
        for migration in self._migrations.of_host(host_id):
            if self._state.vms[migration.vm_id].host == host_id:
                self._migrations.abort(migration, "Host is non-responsive")
            else:
                self._migrations.fail(migration, " due to an Error: Target host is non-responsive")

    def _set_up(self, host_id: str) -> None:
        host = self._state.hosts[host_id]
        if host_id not in self._outages and host.status in _NO_ANSWER:
            self._change_host(host_id, status="up")
