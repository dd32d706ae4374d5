"""Migrations over time: begin, hand over, done; or failed, tried again elsewhere, cancelled.

Source: the engine's MigrateVmCommand, CancelMigrateVmCommand and VmAnalyzer, which hears of it from VDSM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from . import refusals
from .backend import Backend
from .entities import SYSTEM, Caller, Host, Job, Vm
from .event_codes import EventCode, EventType
from .faults import MigrationFault
from .running import Course, Running

#: Looks for another host and begins again there, or gives the migration up.
TryAgain = Callable[["Migration"], None]


@dataclass(eq=False)
class Migration:
    """One VM on its way, over all its tries."""

    vm_id: str
    source: str
    target: str
    caller: Caller
    job: Job | None
    #: The host was named: a failure is not tried again elsewhere.
    explicit: bool = False
    #: Why the engine itself migrates the VM; None when a user does.
    reason: str | None = None
    status_before: str = "up"
    failed_targets: set[str] = field(default_factory=set)
    course: Course = field(default_factory=Course)
    #: Neither failed nor cancelled, nor waiting for another try.
    active: bool = False
    began: datetime | None = None


class Migrations:
    """All migrations under way; the caller holds the lock."""

    def __init__(self, backend: Backend, running: Running) -> None:
        self._backend = backend
        self._state = backend.state
        self._running = running
        self._under_way: dict[str, Migration] = {}
        #: Set by the scheduler's side; called without the lock.
        self.try_again: TryAgain = lambda migration: None

    def begin(self, migration: Migration) -> None:
        """Put the VM on its way, and take the target's memory. Raises `Rejected` when VDSM refuses."""
        fault = self._backend.faults.take_migration(migration.vm_id)
        if fault.refuse:
            raise refusals.vdsm_refused("migrate")
        vm = self._state.vms[migration.vm_id]
        migration.course = self._running.begin(vm.id)
        migration.active = True
        migration.began = self._backend.now
        self._under_way[vm.id] = migration
        self._backend.vm_locks[vm.id] = refusals.vm_being_migrated(vm.name)
        self._state.put_vm(
            replace(
                vm,
                status="migrating",
                migrating_to=migration.target,
                handed_over=False,
                migration_progress=0,
            )
        )
        self._log_begin(migration)
        self._schedule(migration, fault)

    def cancel(self, vm_id: str, caller: Caller) -> None:
        """Leave the VM where it is. It is up again a moment later."""
        migration = self._under_way[vm_id]
        self._log(EventCode.VM_CANCEL_MIGRATION, migration, caller)
        self._settle(migration)

    def withdraw(self, migration: Migration) -> None:
        """Cancel a migration as the engine itself does it: no event reports it."""
        self._settle(migration)

    def of_host(self, host_id: str) -> tuple[Migration, ...]:
        """Give the migrations from and to the host."""
        return tuple(m for m in self._under_way.values() if host_id in (m.source, m.target))

    def get(self, vm_id: str) -> Migration | None:
        return self._under_way.get(vm_id)

    def answer_again(self, host_id: str) -> None:
        """Take on what a host left undone that was away and is back before the engine noticed."""
        for migration in self.of_host(host_id):
            vm = self._state.vms[migration.vm_id]
            if vm.handed_over:
                self._await_up(migration)
            elif migration.active:
                self.fail(migration)
            elif vm.status == "migrating" and vm.host == host_id:
                self._settle(migration)

    def fail(self, migration: Migration, error: str = "") -> None:
        """Leave the VM on its source; try another target, if the user named none and tries are left."""
        if not migration.active:
            return
        self._stop(migration)
        migration.failed_targets.add(migration.target)
        again = (
            not migration.explicit
            and len(migration.failed_targets) <= self._backend.settings.migration_reruns
        )
        if again:
            self._log(EventCode.VM_MIGRATION_TRYING_RERUN, migration, migration.caller, error=error)
            self._running.after_event(migration.vm_id, migration.course, lambda: self._run_again(migration))
        else:
            self.give_up(migration, error)

    def give_up(self, migration: Migration, error: str = "") -> None:
        """End the migration as failed."""
        self._stop(migration)
        code = EventCode.VM_MIGRATION_FAILED
        if migration.explicit:
            code = EventCode.VM_MIGRATION_TO_SERVER_FAILED
        if self._state.hosts[migration.source].status == "preparing_for_maintenance":
            code = EventCode.VM_MIGRATION_FAILED_DURING_MOVE_TO_MAINTENANCE
        self._log(code, migration, migration.caller, error=error)
        course = migration.course
        self._running.after_event(migration.vm_id, course, lambda: self._return(migration, "failed"))

    def abort(self, migration: Migration, error: str) -> None:
        """End a migration whose VM is lost with its host; what becomes of the VM is left to the caller."""
        self._stop(migration)
        self._log(EventCode.VM_MIGRATION_ABORT, migration, migration.caller, error=error)
        self._state.put_vm(replace(self._state.vms[migration.vm_id], migrating_to=None, handed_over=False))
        self.forget(migration, "failed")

    def forget(self, migration: Migration, job_status: str) -> None:
        """Release what the migration holds; the VM's state is left to the caller."""
        del self._under_way[migration.vm_id]
        del self._backend.vm_locks[migration.vm_id]
        self._backend.jobs.end(migration.job, job_status)

    def resume(self, vm: Vm) -> None:
        """Take a migration that the state file found under way to its end; unknown targets bring it back."""
        if vm.host is None:
            return
        migration = Migration(
            vm_id=vm.id,
            source=vm.host,
            target=vm.migrating_to or vm.host,
            caller=SYSTEM,
            job=None,
            explicit=True,
            began=self._backend.now,
            course=self._running.begin(vm.id),
            active=True,
        )
        self._under_way[vm.id] = migration
        self._backend.vm_locks[vm.id] = refusals.vm_being_migrated(vm.name)
        self._schedule(migration, MigrationFault(fail=vm.migrating_to is None))

    def _stop(self, migration: Migration) -> None:
        migration.active = False
        migration.course = self._running.begin(migration.vm_id)

    def _settle(self, migration: Migration) -> None:
        """Let a cancelled migration come to its end."""
        self._stop(migration)
        self._running.later(
            migration.vm_id,
            migration.course,
            self._backend.settings.cancel_seconds,
            lambda: self._return(migration, "aborted"),
        )

    def _schedule(self, migration: Migration, fault: MigrationFault) -> None:
        settings, vm = self._backend.settings, self._state.vms[migration.vm_id]
        seconds = settings.migration_seconds + vm.memory_mb / settings.migration_mib_per_second
        seconds *= fault.slow
        self._report(migration, seconds)
        if fault.hang:
            return
        end = self._fail_by_fault if fault.fail else self._hand_over
        self._running.later(migration.vm_id, migration.course, seconds, lambda: end(migration))

    def _report(self, migration: Migration, seconds: float) -> None:
        """Let the host report, every now and then, how far the migration is."""
        vm = self._state.vms[migration.vm_id]
        passed = (self._backend.now - (migration.began or self._backend.now)).total_seconds()
        self._state.put_vm(replace(vm, migration_progress=min(int(passed / seconds * 100), 99)))
        self._running.later(
            vm.id,
            migration.course,
            self._backend.settings.refresh_seconds,
            lambda: self._report(migration, seconds),
        )

    def _fail_by_fault(self, migration: Migration) -> None:
        self.fail(migration, " due to an Error: Fatal error during migration")

    def _hand_over(self, migration: Migration) -> None:
        """Give the VM to the target; one that has crashed takes nothing, until the engine notices."""
        if migration.target in self._backend.failed_hosts:
            return
        vm = self._state.vms[migration.vm_id]
        self._state.put_vm(replace(vm, host=migration.target, handed_over=True, migration_progress=100))
        self._await_up(migration)

    def _await_up(self, migration: Migration) -> None:
        self._stop(migration)
        self._running.later(
            migration.vm_id,
            migration.course,
            self._backend.settings.hand_over_seconds,
            lambda: self._done(migration),
        )

    def _done(self, migration: Migration) -> None:
        seconds = round((self._backend.now - (migration.began or self._backend.now)).total_seconds())
        self._backend.audit_log.log(
            EventCode.VM_MIGRATION_DONE,
            migration.caller,
            vm=self._state.vms[migration.vm_id],
            host=self._host(migration.target),
            words={"source": self._host(migration.source).name, "seconds": seconds},
        )
        self._running.after_event(
            migration.vm_id, migration.course, lambda: self._return(migration, "finished")
        )

    def _return(self, migration: Migration, job_status: str) -> None:
        """Let the VM run on where it is now: the target after the hand-over, else the source."""
        vm = self._state.vms[migration.vm_id]
        self._state.put_vm(
            replace(
                vm,
                status="paused" if migration.status_before == "paused" else "up",
                migrating_to=None,
                handed_over=False,
                migration_progress=0,
            )
        )
        self.forget(migration, job_status)

    def _run_again(self, migration: Migration) -> None:
        vm = self._state.vms[migration.vm_id]
        self._state.put_vm(
            replace(vm, status=migration.status_before, migrating_to=None, migration_progress=0)
        )
        self._backend.unlocked(0.0, lambda: self.try_again(migration))

    def _log_begin(self, migration: Migration) -> None:
        if migration.reason is None:
            self._log(EventCode.VM_MIGRATION_START, migration, migration.caller)
        else:
            code = EventCode.VM_MIGRATION_START_SYSTEM_INITIATED
            self._log(code, migration, migration.caller, reason=migration.reason)

    def _log(self, code: EventType, migration: Migration, caller: Caller, **words: object) -> None:
        self._backend.audit_log.log(
            code,
            caller,
            vm=self._state.vms[migration.vm_id],
            host=self._host(migration.source),
            words={"target": self._host(migration.target).name, **words},
        )

    def _host(self, host_id: str) -> Host:
        return self._state.hosts[host_id]
