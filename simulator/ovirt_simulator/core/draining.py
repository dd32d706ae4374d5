"""VMs that leave a host which prepares for maintenance: all of them in one batch, or none.

Source: the engine's MaintenanceVdsCommand and MigrateMultipleVmsCommand, with the configuration value
IgnoreVmToVmAffinityForHostMaintenance, which is true from compatibility version 4.3 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..scheduler.placing import Scheduler
from ..scheduler.request import Request
from .affinity import scheduled_together
from .backend import Backend
from .entities import Caller, Vm
from .migrations import Migration, Migrations
from .rejections import Rejected

_REASON = "Host preparing for maintenance"
_MOVABLE = {"up", "powering_up", "paused", "reboot_in_progress"}
#: In the engine it is none of the batch: it leaves already.
_LEAVING = "migrating"


class Draining:
    """Sends VMs away from hosts."""

    def __init__(self, backend: Backend, migrations: Migrations, scheduler: Scheduler) -> None:
        self._backend = backend
        self._state = backend.state
        self._migrations = migrations
        self._scheduler = scheduler

    def refuse_incoming(self, host_id: str) -> None:
        """Cancel the migrations to the host, which no event reports; called with the lock."""
        for migration in self._migrations.of_host(host_id):
            if migration.target == host_id and migration.active:
                self._migrations.withdraw(migration)

    def drain(self, host_id: str, caller: Caller, *, forced: bool) -> bool | None:
        """Migrate every VM away; called without the lock.

        Whether validation found a host for each of them, which is all that the event speaks of; None if the
        host does not prepare for maintenance any more. One VM that may not migrate fails the whole batch.
        A VM that only an external filter refuses stays, without a word.
        """
        with self._backend.lock:
            if not self._is_preparing(host_id):
                return None
            vms = [vm for vm in self._state.vms_on(host_id) if vm.status != _LEAVING]
            if not all(self._may_migrate(vm, forced=forced) for vm in vms):
                return False
            possible = [vm for vm in vms if self._has_host(vm, host_id)]
            groups = scheduled_together(self._state, [vm.id for vm in possible])
        unassigned = [group for group in groups if not self._schedule(group, host_id, caller)]
        alone = [vm_id for group in unassigned for vm_id in group] if self._drops_rules(vms) else []
        for vm_id in alone:
            self._schedule((vm_id,), host_id, caller, without_vm_affinity=True)
        return len(possible) == len(vms)

    def _schedule(
        self, group: tuple[str, ...], host_id: str, caller: Caller, *, without_vm_affinity: bool = False
    ) -> bool:
        request = Request(
            vm_ids=group, blacklist=frozenset({host_id}), without_vm_affinity=without_vm_affinity
        )
        try:
            self._scheduler.schedule(request, partial(self._send, group, host_id, caller))
        except Rejected:
            return False
        return True

    def _has_host(self, vm: Vm, host_id: str) -> bool:
        """Whether the engine's own filters leave a host; those of other VMs it does without here."""
        request = Request(
            vm_ids=(vm.id,),
            blacklist=frozenset({host_id}),
            without_vm_affinity=self._drops_rules([vm]),
        )
        try:
            return bool(self._scheduler.validate(request, "migrate"))
        except Rejected:
            return False

    def _send(self, group: tuple[str, ...], host_id: str, caller: Caller, target: str) -> None:
        for vm_id in group:
            vm = self._state.vms[vm_id]
            if vm.host == host_id and vm.status in _MOVABLE and self._is_preparing(host_id):
                self._migrations.begin(
                    Migration(
                        vm_id=vm_id,
                        source=host_id,
                        target=target,
                        caller=caller,
                        job=None,
                        reason=_REASON,
                        status_before=vm.status,
                    )
                )

    def _drops_rules(self, vms: Sequence[Vm]) -> bool:
        """Whether VMs may be scheduled without hard rules between VMs: of clusters from version 4.3 on."""
        versions = {self._state.clusters[vm.cluster].compatibility for vm in vms}
        return all(tuple(map(int, version.split("."))) >= (4, 3) for version in versions)

    def _may_migrate(self, vm: Vm, *, forced: bool) -> bool:
        if vm.status not in _MOVABLE or (vm.status == "paused" and vm.status_detail == "eio"):
            return False
        if vm.id in self._backend.vm_locks:
            return False
        return vm.affinity == "migratable" or (forced and vm.affinity == "user_migratable")

    def _is_preparing(self, host_id: str) -> bool:
        return self._state.hosts[host_id].status == "preparing_for_maintenance"
