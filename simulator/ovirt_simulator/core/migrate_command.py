"""The migrate command: what refuses it, in the engine's order, and how it begins.

Source: the engine's MigrateVmCommand, MigrateVmToServerCommand, MigrateMultipleVmsCommand and VmValidator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..scheduler.placing import Scheduler
from ..scheduler.request import Request
from . import affinity, refusals
from .audit_log import NO_WORDS
from .backend import Backend
from .entities import Caller, Job, Vm
from .event_codes import EventCode, EventType
from .migrations import Migration, Migrations
from .rejections import Rejected

_STATUSES = {"up", "powering_up", "paused", "reboot_in_progress"}


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller asks for."""

    vm_id: str
    host_id: str | None = None
    cluster_id: str | None = None
    force: bool = False
    closure: bool = False
    caller: Caller
    #: Where the engine itself wants it to go; empty for anywhere.
    hosts: frozenset[str] = frozenset()
    #: Why the engine itself wants it; None for a user's order.
    reason: str | None = None


class MigrateCommand:
    """Validates an order with internal filters only, then schedules with all, then begins."""

    def __init__(self, backend: Backend, migrations: Migrations, scheduler: Scheduler) -> None:
        self._backend = backend
        self._state = backend.state
        self._migrations = migrations
        self._scheduler = scheduler
        migrations.try_again = self._try_again

    def run(self, order: Order) -> Job:
        """Begin the migration and give its job. Raises `Rejected`; called without the lock."""
        with self._backend.lock:
            vms = self._vms(order)
            for vm in vms:
                if vm.id in self._backend.vm_locks:
                    raise Rejected(self._backend.vm_locks[vm.id])
            request = self._validated(order, vms)
            for vm in vms:
                self._backend.vm_locks[vm.id] = refusals.vm_being_migrated(vm.name)
            job = self._backend.jobs.start(self._description(order, vms[0]), order.caller)
        try:
            self._scheduler.schedule(request, lambda target: self._begin(order, vms, target, job))
        except Rejected:
            with self._backend.lock:
                self._backend.jobs.end(job, "failed")
                self._log(EventCode.VM_MIGRATION_NO_VDS_TO_MIGRATE_TO, vms[0], order.caller)
            raise
        finally:
            with self._backend.lock:
                for vm in vms:
                    if self._migrations.get(vm.id) is None:
                        self._backend.vm_locks.pop(vm.id, None)
        return job

    def _description(self, order: Order, vm: Vm) -> str:
        host = None if order.host_id is None else self._state.hosts[order.host_id]
        return f"Migrating VM {vm.name}" + (f" to Host {host.name}" if host is not None else "")

    def _vms(self, order: Order) -> list[Vm]:
        if order.vm_id not in self._state.vms:
            raise refusals.vm_not_found("migrate")
        ids = affinity.closure(self._state, order.vm_id) if order.closure else (order.vm_id,)
        return [self._state.vms[vm_id] for vm_id in ids]

    def _validated(self, order: Order, vms: Sequence[Vm]) -> Request:
        """Give the scheduler's request; a user's refusal is logged as event 65, each time."""
        try:
            self._check_host(order, vms[0])
            for vm in vms:
                _check_vm(vm, force=order.force)
            request = self._request(order, vms)
            self._scheduler.validate(request, "migrate")
            if order.host_id is not None and order.host_id == vms[0].host:
                raise refusals.same_host()
        except Rejected as refusal:
            if order.reason is None:
                words = {"error": f" due to a failed validation: {refusal.detail}"}
                self._log(EventCode.VM_MIGRATION_FAILED, vms[0], order.caller, words)
            raise
        return request

    def _check_host(self, order: Order, vm: Vm) -> None:
        if order.host_id is None:
            return
        host = self._state.hosts.get(order.host_id)
        if host is None:
            raise refusals.invalid_host("migrate")
        if not host.up:
            raise refusals.host_not_up("migrate")
        if order.cluster_id is not None and host.cluster != vm.cluster:
            raise refusals.between_clusters()

    def _request(self, order: Order, vms: Sequence[Vm]) -> Request:
        """Rule the source out, but when the action carries a cluster: then the engine never learns of it."""
        source = vms[0].host
        blacklist = {source} if source is not None and order.cluster_id is None else set()
        whitelist = {order.host_id} if order.host_id is not None else order.hosts
        return Request(
            vm_ids=tuple(vm.id for vm in vms),
            blacklist=frozenset(blacklist),
            whitelist=frozenset(whitelist),
        )

    def _begin(self, order: Order, vms: Sequence[Vm], target: str, job: Job) -> None:
        if self._state.vms[order.vm_id].host == target:
            raise refusals.same_host()
        for vm in vms:
            now = self._state.vms[vm.id]
            if now.host in (None, target) or now.status not in _STATUSES:
                continue
            self._migrations.begin(
                Migration(
                    vm_id=now.id,
                    source=now.host,
                    target=target,
                    caller=order.caller,
                    job=job if now.id == order.vm_id else None,
                    explicit=order.host_id is not None,
                    reason=order.reason,
                    status_before=now.status,
                )
            )

    def _try_again(self, migration: Migration) -> None:
        """Look for another host for a migration that failed; give it up when there is none."""
        blacklist = frozenset({migration.source, *migration.failed_targets})
        request = Request(vm_ids=(migration.vm_id,), blacklist=blacklist)
        try:
            self._scheduler.schedule(request, lambda target: self._begin_again(migration, target))
        except Rejected:
            with self._backend.lock:
                if self._is_waiting(migration):
                    self._migrations.give_up(migration)

    def _begin_again(self, migration: Migration, target: str) -> None:
        if self._is_waiting(migration):
            migration.target = target
            self._migrations.begin(migration)

    def _is_waiting(self, migration: Migration) -> bool:
        vm = self._state.vms[migration.vm_id]
        return self._migrations.get(vm.id) is migration and vm.status in _STATUSES

    def _log(self, code: EventType, vm: Vm, caller: Caller, words: Mapping[str, object] = NO_WORDS) -> None:
        host = None if vm.host is None else self._state.hosts[vm.host]
        self._backend.audit_log.log(code, caller, vm=vm, host=host, words=words)


def _check_vm(vm: Vm, *, force: bool) -> None:
    if vm.engine_status == "MigratingFrom":
        raise refusals.migration_in_progress("migrate")
    if vm.affinity == "pinned":
        raise refusals.vm_pinned()
    if vm.affinity == "user_migratable" and not force:
        raise refusals.vm_not_forced()
    if vm.status == "not_responding":
        raise refusals.vm_status_illegal("migrate", "NotResponding")
    if vm.status == "paused" and vm.status_detail == "eio":
        raise refusals.paused_eio()
    if vm.status not in _STATUSES:
        raise refusals.vm_not_running("migrate")
