"""Migrations: what refuses them, in the engine's order, and how they go on over time, fail and are cancelled.

Source: the engine's MigrateVmCommand, MigrateVmToServerCommand, MigrateMultipleVmsCommand, VmValidator,
CancelMigrateVmCommand and VmAnalyzer, which hears of it from VDSM.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from ovirt_simulator.core import affinity, messages
from ovirt_simulator.core.backend import Backend, Commands, MigrationFault
from ovirt_simulator.core.commands.running import Course, Running
from ovirt_simulator.core.entities import SYSTEM, Caller, Job, Vm
from ovirt_simulator.core.messages import EventCode, EventType, Message, Rejected
from ovirt_simulator.scheduler.filters import Request
from ovirt_simulator.scheduler.placing import Scheduler

_STATUSES = {"up", "powering_up", "paused", "reboot_in_progress"}


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller asks for."""

    vm_id: str
    host_id: str | None = None
    #: What the action carried; it decides which refusal a target equal to the source gets.
    cluster_id: str | None = None
    force: bool = False
    #: Whether hard peers go along.
    closure: bool = False
    caller: Caller
    #: Where the engine itself wants it to go; empty for anywhere.
    hosts: frozenset[str] = frozenset()
    #: Why the engine itself wants it; None for a user's order.
    reason: str | None = None


@dataclass(eq=False)
class Migration:
    """One VM on its way, over all its tries."""

    vm_id: str
    source: str
    target: str
    caller: Caller
    job: Job | None = None
    #: The host was named: a failure is not tried again elsewhere.
    explicit: bool = False
    #: Why the engine itself migrates the VM; None when a user does.
    reason: str | None = None
    status_before: str = "up"
    failed_targets: set[str] = field(default_factory=set)
    #: Neither failed nor cancelled, nor waiting for another try.
    active: bool = False
    course: Course = field(init=False)
    #: What other commands meet that ask for the VM.
    lock: Message = field(init=False)
    began: datetime | None = None


def leaving(vm: Vm, target: str, caller: Caller, **more: Any) -> Migration:
    """Give the migration of a VM from where it runs."""
    return Migration(vm.id, vm.host or "", target, caller, status_before=vm.status, **more)


class Migrations(Commands):
    """All migrations under way; the caller holds the lock, but of `carry_out`."""

    def __init__(self, backend: Backend, running: Running, scheduler: Scheduler) -> None:
        super().__init__(backend)
        self.running = running
        self.scheduler = scheduler
        self._under_way: dict[str, Migration] = {}

    def begin(self, migration: Migration) -> None:
        """Put the VM on its way, and take the target's memory. Raises `Rejected` when VDSM refuses."""
        fault = self._backend.faults.pop_fault(MigrationFault, migration.vm_id)
        if fault.refuse:
            raise messages.bad_parameters("Cannot migrate VM. VDSM refused the command.")
        vm = self._state.vms[migration.vm_id]
        self._enter(migration)
        self._change_vm(vm.id, status="migrating", migrating_to=migration.target, handed_over=False)
        system = EventCode.VM_MIGRATION_START_SYSTEM_INITIATED
        code = EventCode.VM_MIGRATION_START if migration.reason is None else system
        self._log_of(code, migration, reason=migration.reason or "")
        self._schedule(migration, fault)

    def cancel(self, vm_id: str, caller: Caller) -> None:
        """Leave the VM where it is. It is up again a moment later."""
        self._log_of(EventCode.VM_CANCEL_MIGRATION, self._under_way[vm_id], caller)
        self.withdraw(self._under_way[vm_id])

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
                self.withdraw(migration)

    def fail(self, migration: Migration, error: str = "") -> None:
        """Leave the VM on its source; try another target, if the user named none and tries are left."""
        if not migration.active:
            return
        self._stop(migration)
        migration.failed_targets.add(migration.target)
        if migration.explicit or len(migration.failed_targets) > self._settings.migration_reruns:
            self._give_up(migration, error)
            return
        self._log_of(EventCode.VM_MIGRATION_TRYING_RERUN, migration, error=error)

        def run_again() -> None:
            self._change_vm(migration.vm_id, status=migration.status_before, migrating_to=None)
            self._backend.unlocked(0.0, lambda: self._try_again(migration))

        migration.course.after_event(run_again)

    def _give_up(self, migration: Migration, error: str = "") -> None:
        self._stop(migration)
        code = EventCode.VM_MIGRATION_FAILED
        if migration.explicit:
            code = EventCode.VM_MIGRATION_TO_SERVER_FAILED
        if self._state.hosts[migration.source].status == "preparing_for_maintenance":
            code = EventCode.VM_MIGRATION_FAILED_DURING_MOVE_TO_MAINTENANCE
        self._log_of(code, migration, error=error)
        migration.course.after_event(lambda: self._return(migration, "failed"))

    def abort(self, migration: Migration, error: str) -> None:
        """End a migration whose VM is lost with its host; what becomes of the VM is left to the caller."""
        self._stop(migration)
        self._log_of(EventCode.VM_MIGRATION_ABORT, migration, error=error)
        self.forget(migration, "failed")

    def resume(self, vm: Vm) -> None:
        """Take a migration that the state file found under way to its end; unknown targets bring it back."""
        if vm.host is not None:
            migration = leaving(vm, vm.migrating_to or vm.host, SYSTEM, explicit=True)
            self._enter(migration)
            self._schedule(migration, MigrationFault(fail=vm.migrating_to is None))

    def withdraw(self, migration: Migration) -> None:
        """Cancel a migration as the engine itself does it: no event reports it."""
        self._stop(migration)
        migration.course.later(self._settings.cancel_seconds, lambda: self._return(migration, "failed"))

    def _enter(self, migration: Migration) -> None:
        migration.course = self.running.begin(migration.vm_id)
        migration.active = True
        migration.began = self._backend.now
        self._under_way[migration.vm_id] = migration
        migration.lock = messages.vm_being_migrated(self._state.vms[migration.vm_id].name)
        self._backend.vm_locks[migration.vm_id] = migration.lock

    def _stop(self, migration: Migration) -> None:
        migration.active = False
        migration.course = self.running.begin(migration.vm_id)

    def _schedule(self, migration: Migration, fault: MigrationFault) -> None:
        if fault.hang:
            return
        memory_mb = self._state.vms[migration.vm_id].memory_mb
        seconds = self._settings.migration_seconds + memory_mb / self._settings.migration_mib_per_second
        error = " due to an Error: Fatal error during migration"
        end = partial(self.fail, migration, error) if fault.fail else partial(self._hand_over, migration)
        migration.course.later(seconds * fault.slow, end)

    def _hand_over(self, migration: Migration) -> None:
        """Give the VM to the target; one that has crashed takes nothing, until the engine notices."""
        if migration.target not in self._backend.failed_hosts:
            self._change_vm(migration.vm_id, host=migration.target, handed_over=True)
            self._await_up(migration)

    def _await_up(self, migration: Migration) -> None:
        self._stop(migration)
        migration.course.later(self._settings.hand_over_seconds, lambda: self._done(migration))

    def _done(self, migration: Migration) -> None:
        seconds = round((self._backend.now - (migration.began or self._backend.now)).total_seconds())
        source, code = self._state.hosts[migration.source].name, EventCode.VM_MIGRATION_DONE
        vm, host = self._state.vms[migration.vm_id], migration.target
        self._log(code, migration.caller, vm=vm, host=host, source=source, seconds=seconds)
        migration.course.after_event(lambda: self._return(migration, "finished"))

    def _return(self, migration: Migration, job_status: str) -> None:
        """Let the VM run on where it is now: the target after the hand-over, else the source."""
        self.forget(migration, job_status, status="paused" if migration.status_before == "paused" else "up")

    def forget(self, migration: Migration, job_status: str, **changes: str) -> None:
        """Release what the migration holds."""
        self._change_vm(migration.vm_id, migrating_to=None, handed_over=False, **changes)
        del self._under_way[migration.vm_id]
        self._backend.unlock(migration.vm_id, migration.lock)
        self._jobs.end(migration.job, job_status)

    def _log_of(self, code: EventType, migration: Migration, by: Caller | None = None, **words: Any) -> None:
        vm, target = self._state.vms[migration.vm_id], self._state.hosts[migration.target].name
        self._log(code, by or migration.caller, vm=vm, host=migration.source, target=target, **words)

    # -- Orders: validated with internal filters only, then scheduled with all, then begun.

    def carry_out(self, order: Order) -> Job:
        """Begin the migration and give its job. Raises `Rejected`; called without the lock."""
        with self._backend.lock:
            vms = self._vms(order)
            for vm in vms:
                if vm.id in self._backend.vm_locks:
                    raise Rejected(self._backend.vm_locks[vm.id])
            request = self._validated(order, vms)
            held = {vm.id: messages.vm_being_migrated(vm.name) for vm in vms}
            self._backend.vm_locks.update(held)
            to = "" if order.host_id is None else f" to Host {self._state.hosts[order.host_id].name}"
            job = self._jobs.start(f"Migrating VM {vms[0].name}{to}", order.caller)
        begin = partial(self._begin_migration, order, vms, job)
        with self.failing(EventCode.VM_MIGRATION_NO_VDS_TO_MIGRATE_TO, vms[0], job, order.caller, held):
            try:
                self.scheduler.schedule(request, begin)
            except Rejected as refusal:
                if refusal.messages or not order.closure:
                    raise
                with self._backend.lock:  # the command for several VMs passes over who finds no host
                    self._jobs.end(job, "finished")
        return job

    @contextmanager
    def failing(
        self, code: EventType, vm: Vm, job: Job, caller: Caller, held: Mapping[str, Message]
    ) -> Iterator[None]:
        """Let the job fail, as an event says, if the engine refuses; in any case let go of what is held."""
        try:
            yield
        except Rejected:
            with self._backend.lock:
                self._log(code, caller, vm=vm, error="")
                self._jobs.end(job, "failed")
            raise
        finally:
            with self._backend.lock:
                for vm_id, lock in held.items():
                    self._backend.unlock(vm_id, lock)

    def _vms(self, order: Order) -> list[Vm]:
        if order.vm_id not in self._state.vms:
            raise messages.vm_not_found("migrate")
        ids = affinity.closure(self._state, order.vm_id) if order.closure else (order.vm_id,)
        return [self._state.vms[vm_id] for vm_id in ids]

    def _validated(self, order: Order, vms: Sequence[Vm]) -> Request:
        """Give the scheduler's request; a user's refusal is logged as event 65, each time.

        The command for a closure logs none, and knows of the host only what the scheduler says.
        """
        try:
            if not order.closure:
                self._check_host(order, vms[0])
            for vm in vms:
                _check_vm(vm, force=order.force)
            request = self._request(order, vms)
            self.scheduler.validate(request, "migrate")
            if order.host_id is not None and order.host_id == vms[0].host:
                raise _same_host()
        except Rejected as refusal:
            if order.reason is None and not order.closure:
                error = f" due to a failed validation: {refusal.detail}"
                self._log(EventCode.VM_MIGRATION_FAILED, order.caller, vm=vms[0], error=error)
                self._jobs.note(f"Migrating VM {vms[0].name}", order.caller, "failed")
            raise
        return request

    def _check_host(self, order: Order, vm: Vm) -> None:
        if order.host_id is None:
            return
        host = self._state.hosts.get(order.host_id)
        if host is None:
            raise messages.invalid_host("migrate")
        if not host.up:
            raise messages.cannot("migrate", "Operation can be performed only when Host status is Up.")
        if order.cluster_id is not None and host.cluster != vm.cluster:
            raise messages.conflict("Cannot migrate VM between two clusters.")

    def _request(self, order: Order, vms: Sequence[Vm]) -> Request:
        """Rule the source out, but when the action carries a cluster: then the engine never learns of it."""
        source = vms[0].host
        blacklist = {source} if source is not None and order.cluster_id is None else set()
        whitelist = {order.host_id} if order.host_id is not None else order.hosts
        return Request(
            vm_ids=tuple(vm.id for vm in vms), blacklist=frozenset(blacklist), whitelist=frozenset(whitelist)
        )

    def _begin_migration(self, order: Order, vms: Sequence[Vm], job: Job, target: str) -> None:
        if self._state.vms[order.vm_id].host == target:
            raise _same_host()
        for vm in vms:
            now = self._state.vms[vm.id]
            if now.host in (None, target) or now.status not in _STATUSES:
                continue
            its, explicit = job if now.id == order.vm_id else None, order.host_id is not None
            self.begin(leaving(now, target, order.caller, job=its, explicit=explicit, reason=order.reason))

    def _try_again(self, migration: Migration) -> None:
        blacklist = frozenset({migration.source, *migration.failed_targets})

        def begin_again(target: str) -> None:
            if self._is_waiting(migration):
                migration.target = target
                self.begin(migration)

        if not self.scheduler.tries(Request(vm_ids=(migration.vm_id,), blacklist=blacklist), begin_again):
            with self._backend.lock:
                if self._is_waiting(migration):
                    self._give_up(migration)

    def _is_waiting(self, migration: Migration) -> bool:
        vm = self._state.vms[migration.vm_id]
        return self._under_way.get(vm.id) is migration and vm.status in _STATUSES


def _check_vm(vm: Vm, *, force: bool) -> None:
    if vm.affinity == "pinned":
        raise messages.cannot("migrate", "VM is pinned to Host.")
    if vm.affinity == "user_migratable" and not force:
        unforced = "VM is non migratable and user did not specify the force-migration flag"
        raise messages.cannot("migrate", unforced)
    if vm.engine_status == "MigratingFrom":
        raise messages.cannot("migrate", "VM migration is in progress.")
    if vm.status == "not_responding":
        raise messages.vm_status_illegal("migrate", "NotResponding")
    if vm.status not in _STATUSES:
        raise messages.cannot("migrate", "VM is not running.")


def _same_host() -> Rejected:
    return messages.conflict("Cannot migrate VM, source and destination is the same.")
