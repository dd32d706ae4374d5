"""Hosts on their way into maintenance and back: VMs migrate away first, and time passes."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from ..scheduler.placing import Scheduler
from ..scheduler.request import Request
from .affinity import scheduled_together
from .backend import Backend
from .entities import SYSTEM, Caller, Job, Vm
from .event_codes import EventCode
from .migrations import Migration, Migrations
from .outages import Outages
from .rejections import Rejected

_REASON = "Host preparing for maintenance"


class Maintenance:
    """Drains hosts; whoever calls `begin` and `activate` holds the lock."""

    def __init__(
        self, backend: Backend, migrations: Migrations, scheduler: Scheduler, outages: Outages
    ) -> None:
        self._backend = backend
        self._state = backend.state
        self._migrations = migrations
        self._scheduler = scheduler
        self._outages = outages

    def begin(self, host_id: str, job: Job, caller: Caller) -> None:
        """Let the host take no more VMs, and send those it has away."""
        self._set_status(host_id, "preparing_for_maintenance")
        self._backend.unlocked(0.0, lambda: self._drain(host_id, caller))
        self._look(host_id, job, caller, self._backend.timeline.elapsed)

    def activate(self, host_id: str, job: Job) -> None:
        """Bring the host up; one that only prepares for maintenance is up at once."""
        if self._state.hosts[host_id].status == "preparing_for_maintenance":
            self._up(host_id, job)
            return
        self._set_status(host_id, "unassigned")
        self._backend.after(
            self._backend.settings.host_activation_seconds, lambda: self._activated(host_id, job)
        )

    def _drain(self, host_id: str, caller: Caller) -> None:
        """Migrate what can migrate, each hard positive group to one host; called without the lock."""
        with self._backend.lock:
            if not self._is_preparing(host_id):
                return
            vms = [vm for vm in self._state.vms_on(host_id) if self._is_movable(vm)]
            groups = scheduled_together(self._state, [vm.id for vm in vms])
        failed = False
        for group in groups:
            request = Request(vm_ids=group, blacklist=frozenset({host_id}))
            try:
                self._scheduler.schedule(request, partial(self._send, group, host_id, caller))
            except Rejected:
                failed = True
        if failed:
            with self._backend.lock:
                code = EventCode.USER_VDS_MAINTENANCE_MIGRATION_FAILED
                self._backend.audit_log.log(code, caller, host=self._state.hosts[host_id])

    def _send(self, group: tuple[str, ...], host_id: str, caller: Caller, target: str) -> None:
        for vm_id in group:
            vm = self._state.vms[vm_id]
            if vm.host == host_id and self._is_movable(vm) and self._is_preparing(host_id):
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

    def _look(self, host_id: str, job: Job, caller: Caller, drained: float) -> None:
        """Look again and again whether the host is empty; after a while, try what is left once more."""
        if not self._is_preparing(host_id):
            self._backend.jobs.end(job, "aborted")
            return
        vms = self._state.vms_on(host_id)
        if not vms and not self._state.incoming(host_id):
            self._backend.audit_log.log(EventCode.VDS_MAINTENANCE, caller, host=self._state.hosts[host_id])
            self._backend.after_event(lambda: self._in_maintenance(host_id, job))
            return
        settings = self._backend.settings
        now = self._backend.timeline.elapsed
        idle = not any(vm.status == "migrating" for vm in vms)
        if idle and now - drained >= settings.retry_seconds:
            drained = now
            self._backend.unlocked(0.0, lambda: self._drain(host_id, caller))
        self._backend.after(settings.refresh_seconds, lambda: self._look(host_id, job, caller, drained))

    def _in_maintenance(self, host_id: str, job: Job) -> None:
        if self._is_preparing(host_id):
            self._set_status(host_id, "maintenance")
            self._backend.jobs.end(job, "finished")

    def _activated(self, host_id: str, job: Job) -> None:
        host = self._state.hosts[host_id]
        if host.status != "unassigned":
            self._backend.jobs.end(job, "aborted")
        elif host_id in self._backend.failed_hosts:
            self._backend.audit_log.log(EventCode.VDS_FAILURE, SYSTEM, host=host)
            self._set_status(host_id, "non_responsive")
            self._backend.jobs.end(job, "failed")
        else:
            self._backend.audit_log.log(EventCode.VDS_DETECTED, SYSTEM, host=host, words={"status": "Up"})
            self._backend.after_event(lambda: self._up(host_id, job))

    def _up(self, host_id: str, job: Job) -> None:
        if host_id not in self._backend.failed_hosts:
            self._set_status(host_id, "up")
            self._outages.restore_vms(host_id)
        self._backend.jobs.end(job, "finished")

    def _is_preparing(self, host_id: str) -> bool:
        return self._state.hosts[host_id].status == "preparing_for_maintenance"

    def _is_movable(self, vm: Vm) -> bool:
        idle = vm.status in {"up", "powering_up", "paused", "reboot_in_progress"}
        return idle and vm.migratable and vm.id not in self._backend.vm_locks

    def _set_status(self, host_id: str, status: str) -> None:
        self._state.put(self._state.hosts, replace(self._state.hosts[host_id], status=status))
