"""Hosts on their way into maintenance and back: VMs migrate away first, and time passes.

Source: the engine's MaintenanceNumberOfVdssCommand, MaintenanceVdsCommand and HostMonitoring.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from .backend import Backend
from .draining import Draining
from .entities import SYSTEM, Caller, Job
from .event_codes import EventCode, EventType
from .outages import Outages


class Maintenance:
    """Takes hosts into maintenance and back; the caller@@ `begin` and `activate` holds the lock."""

    def __init__(self, backend: Backend, draining: Draining, outages: Outages) -> None:
        self._backend = backend
        self._state = backend.state
        self._draining = draining
        self._outages = outages
        #: The attempt that counts for each host that prepares: a later one takes over.
        self._attempts: dict[str, Job] = {}

    def begin(
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
        self._set_status(host_id, "preparing_for_maintenance")
        self._attempts[host_id] = job
        self._draining.refuse_incoming(host_id)

        def drain() -> None:
            scheduled = self._draining.drain(host_id, caller, forced=not internal)
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
        self._look(host_id, job, self._backend.timeline.elapsed)

    def activate(self, host_id: str, job: Job) -> None:
        """Bring the host up; one that only prepares for maintenance is up at once."""
        if self._state.hosts[host_id].status == "preparing_for_maintenance":
            self._up(host_id, job)
            return
        self._set_status(host_id, "unassigned")
        self._backend.after(
            self._backend.settings.host_activation_seconds, lambda: self._activated(host_id, job)
        )

    def _log_end(self, host_id: str, caller: Caller, reason: str, *, scheduled: bool, internal: bool) -> None:
        """Log that the command has ended; no event says when the host arrives in maintenance."""
        done, failed = EventCode.VDS_MAINTENANCE, EventCode.VDS_MAINTENANCE_FAILED
        if not internal:
            done = EventCode.USER_VDS_MAINTENANCE if reason else EventCode.USER_VDS_MAINTENANCE_WITHOUT_REASON
            failed = EventCode.USER_VDS_MAINTENANCE_MIGRATION_FAILED
        code: EventType = done if scheduled else failed
        host = self._state.hosts[host_id]
        self._backend.audit_log.log(code, caller, host=host, words={"reason": reason})

    def _look(self, host_id: str, job: Job, drained: float) -> None:
        """Look again and again whether the host is empty; after a while, try what is left once more."""
        if not self._is_preparing(host_id) or self._attempts.get(host_id) is not job:
            self._backend.jobs.end(job, "aborted")
            return
        vms = self._state.vms_on(host_id)
        if not vms and not self._state.incoming(host_id):
            self._set_status(host_id, "maintenance")
            self._backend.jobs.end(job, "finished")
            return
        settings = self._backend.settings
        now = self._backend.timeline.elapsed
        idle = not any(vm.status == "migrating" for vm in vms)
        if idle and now - drained >= settings.retry_seconds:
            drained = now
            self._backend.unlocked(0.0, lambda: self._try_again(host_id))
        self._backend.after(settings.refresh_seconds, lambda: self._look(host_id, job, drained))

    def _try_again(self, host_id: str) -> None:
        """Drain as the engine's own order: what a user's order forces refuses it now."""
        scheduled = self._draining.drain(host_id, SYSTEM, forced=False)
        if scheduled is not None:
            with self._backend.lock:
                self._log_end(host_id, SYSTEM, "", scheduled=scheduled, internal=True)

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

    def _set_status(self, host_id: str, status: str) -> None:
        self._state.put(self._state.hosts, replace(self._state.hosts[host_id], status=status))
