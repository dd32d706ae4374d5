"""Hosts: maintenance, for which VMs migrate away first, all in one batch or none; activation, and accidents.

Source: the engine's MaintenanceNumberOfVdssCommand, MaintenanceVdsCommand, MigrateMultipleVmsCommand and
HostMonitoring, with the configuration value IgnoreVmToVmAffinityForHostMaintenance, which is true from
compatibility version 4.3 on.
"""

from collections.abc import Callable, Sequence
from functools import partial

from ovirt_simulator.core import rejections
from ovirt_simulator.core.affinity import scheduled_together
from ovirt_simulator.core.backend import Backend, locked
from ovirt_simulator.core.commands.migrations import Migrations, leaving
from ovirt_simulator.core.commands.outages import Outages, Restarts
from ovirt_simulator.core.commands.running import Running
from ovirt_simulator.core.entities import ADMIN, SYSTEM, Caller, Host, Job, Vm
from ovirt_simulator.core.events import EventCode, EventType
from ovirt_simulator.core.rejections import Rejected
from ovirt_simulator.scheduler.filters import Request
from ovirt_simulator.scheduler.placing import Scheduler

_MOVABLE = {"up", "powering_up", "paused", "reboot_in_progress"}
_CAN_LEAVE = {
    "up",
    "non_responsive",
    "error",
    "preparing_for_maintenance",
    "down",
    "non_operational",
    "install_failed",
}
_WITHOUT_VMS = {"non_responsive", "down"}
_CAN_COME = {"maintenance", "preparing_for_maintenance", "non_operational", "non_responsive", "error", "down"}


class HostCommands(Outages):
    """Takes hosts into maintenance and back. The commands, all but `fail` and `recover`, raise `Rejected`."""

    def __init__(
        self,
        backend: Backend,
        running: Running,
        migrations: Migrations,
        restarts: Restarts,
        scheduler: Scheduler,
    ) -> None:
        super().__init__(backend, running, migrations, restarts)
        self._scheduler = scheduler
        #: The attempt that counts for each host that prepares: a later one takes over.
        self._attempts: dict[str, Job] = {}

    @locked
    def deactivate(self, host_id: str, *, reason: str = "", caller: Caller = ADMIN) -> Job:
        """Put the host into maintenance: its VMs migrate away first. One that prepares is drained again."""
        host = self.check_deactivation(host_id, internal=False)
        job = self._backend.jobs.start(f"Moving Host(s) {host.name} to Maintenance", caller)
        self.begin_maintenance(host_id, job, caller, reason=reason)
        return job

    def check_deactivation(self, host_id: str, *, internal: bool) -> Host:
        """Give the host if it may go into maintenance; `internal` is an order of the engine's own."""
        host = self.known(host_id, "maintenance")
        vms = self._state.vms_on(host_id)
        if host.status not in _CAN_LEAVE:
            raise rejections.conflict(
                "Cannot switch Host to Maintenance mode. Host is already in Maintenance mode."
            )
        immovable = {"pinned", "user_migratable"} if internal else {"pinned"}
        if staying := [vm.name for vm in vms if vm.affinity in immovable]:
            raise rejections.conflict(
                "Cannot switch Host to Maintenance mode. Host has running VMs that are not migratable: "
                + ", ".join(staying)
                + "."
            )
        if host.status in _WITHOUT_VMS and vms:
            raise rejections.conflict("Cannot switch Host to Maintenance mode. Host is not operational.")
        return host

    @locked
    def activate(self, host_id: str, *, caller: Caller = ADMIN) -> Job:
        """Bring the host up from maintenance or trouble."""
        host = self.known(host_id, "activate")
        if host.status not in _CAN_COME:
            raise rejections.conflict(f"Cannot activate Host. Host in {host.status.capitalize()} status.")
        self._log(EventCode.VDS_ACTIVATE, caller, host=host)
        self._log(EventCode.SYSTEM_UPDATE_CLUSTER, SYSTEM, host=host)
        job = self._backend.jobs.start(f"Invoking Activate Host {host.name}", caller)
        self.bring_up(host_id, job)
        return job

    def known(self, host_id: str, action: str) -> Host:
        """Give the host that an action is asked of."""
        host = self._state.hosts.get(host_id)
        if host is None:
            raise rejections.host_not_found(action)
        return host

    # -- What the commands begin, and other commands as well; the caller holds the lock.

    def begin_maintenance(
        self,
        host_id: str,
        job: Job,
        caller: Caller,
        *,
        reason: str = "",
        internal: bool = False,
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Let the host take no more VMs, and send those it has away.

        `internal` is an order of the engine's own; `failed` is called if not all VMs can be scheduled.
        """
        self._change_host(host_id, status="preparing_for_maintenance")
        self._attempts[host_id] = job
        for migration in self._migrations.of_host(host_id):
            if migration.target == host_id and migration.active:
                self._migrations.withdraw(migration)

        def drain() -> None:
            scheduled = self._drain(host_id, caller, forced=not internal)
            with self._backend.lock:
                if scheduled is None:
                    return
                self._log_end(host_id, caller, reason, scheduled=scheduled, internal=internal)
                if not scheduled:
                    failed()

        if self._state.vms_on(host_id):
            self._backend.unlocked(0.0, drain)
        else:
            self._log_end(host_id, caller, reason, scheduled=True, internal=internal)
        self._watch_drained(host_id, job, self._backend.timeline.elapsed)

    def bring_up(self, host_id: str, job: Job) -> None:
        """Bring the host up; one that only prepares for maintenance is up at once."""
        if self._state.hosts[host_id].status == "preparing_for_maintenance":
            self._up(host_id, job)
            return
        self._change_host(host_id, status="unassigned")
        self._backend.after(
            self._backend.settings.host_activation_seconds, lambda: self._activated(host_id, job)
        )

    def _drain(self, host_id: str, caller: Caller, *, forced: bool) -> bool | None:
        """Migrate every VM away; called without the lock.

        Whether validation found a host for each of them, which is all that the event speaks of; None if the
        host does not prepare for maintenance any more. One VM that may not migrate fails the whole batch.
        A VM that only an external filter refuses stays, without a word.
        """
        with self._backend.lock:
            if not self._is_preparing(host_id):
                return None
            # One that migrates leaves already.
            vms = [vm for vm in self._state.vms_on(host_id) if vm.status != "migrating"]
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
            vm_ids=(vm.id,), blacklist=frozenset({host_id}), without_vm_affinity=self._drops_rules([vm])
        )
        try:
            return bool(self._scheduler.validate(request, "migrate"))
        except Rejected:
            return False

    def _send(self, group: tuple[str, ...], host_id: str, caller: Caller, target: str) -> None:
        for vm_id in group:
            vm = self._state.vms[vm_id]
            if vm.host == host_id and vm.status in _MOVABLE and self._is_preparing(host_id):
                # No reason is given, though the engine's code has words for it.
                self._migrations.begin(leaving(vm, target, caller, reason=""))

    def _drops_rules(self, vms: Sequence[Vm]) -> bool:
        """Whether VMs may be scheduled without hard rules between VMs: of clusters from version 4.3 on."""
        versions = {self._state.clusters[vm.cluster].compatibility for vm in vms}
        return all(tuple(map(int, version.split("."))) >= (4, 3) for version in versions)

    def _may_migrate(self, vm: Vm, *, forced: bool) -> bool:
        if vm.status not in _MOVABLE or vm.id in self._backend.vm_locks:
            return False
        return vm.affinity == "migratable" or (forced and vm.affinity == "user_migratable")

    def _log_end(self, host_id: str, caller: Caller, reason: str, *, scheduled: bool, internal: bool) -> None:
        """Log that the command has ended; no event says when the host arrives in maintenance."""
        done, failed = EventCode.VDS_MAINTENANCE, EventCode.VDS_MAINTENANCE_FAILED
        if not internal:
            done = EventCode.USER_VDS_MAINTENANCE if reason else EventCode.USER_VDS_MAINTENANCE_WITHOUT_REASON
            failed = EventCode.USER_VDS_MAINTENANCE_MIGRATION_FAILED
        code: EventType = done if scheduled else failed
        host = self._state.hosts[host_id]
        self._log(code, caller, host=host, reason=reason)

    def _watch_drained(self, host_id: str, job: Job, drained: float) -> None:
        """Look again and again whether the host is empty; after a while, try what is left once more."""
        if not self._is_preparing(host_id) or self._attempts.get(host_id) is not job:
            self._backend.jobs.end(job, "aborted")
            return
        vms = self._state.vms_on(host_id)
        if not vms and not self._state.incoming(host_id):
            self._change_host(host_id, status="maintenance")
            self._backend.jobs.end(job, "finished")
            return
        settings = self._backend.settings
        now = self._backend.timeline.elapsed
        idle = not any(vm.status == "migrating" for vm in vms)
        if idle and now - drained >= settings.retry_seconds:
            drained = now
            self._backend.unlocked(0.0, lambda: self._try_again(host_id))
        self._backend.after(settings.refresh_seconds, lambda: self._watch_drained(host_id, job, drained))

    def _try_again(self, host_id: str) -> None:
        """Drain as the engine's own order: what a user's order forces refuses it now."""
        scheduled = self._drain(host_id, SYSTEM, forced=False)
        if scheduled is not None:
            with self._backend.lock:
                self._log_end(host_id, SYSTEM, "", scheduled=scheduled, internal=True)

    def _activated(self, host_id: str, job: Job) -> None:
        host = self._state.hosts[host_id]
        if host.status != "unassigned":
            self._backend.jobs.end(job, "aborted")
        elif host_id in self._backend.failed_hosts:
            self._log(EventCode.VDS_FAILURE, SYSTEM, host=host)
            self._change_host(host_id, status="non_responsive")
            self._backend.jobs.end(job, "failed")
        else:
            self._log(EventCode.VDS_DETECTED, SYSTEM, host=host, status="Up")
            self._backend.after_event(lambda: self._up(host_id, job))

    def _up(self, host_id: str, job: Job) -> None:
        if host_id not in self._backend.failed_hosts:
            self._change_host(host_id, status="up")
            self.restore_vms(host_id)
        self._backend.jobs.end(job, "finished")

    def _is_preparing(self, host_id: str) -> bool:
        return self._state.hosts[host_id].status == "preparing_for_maintenance"
