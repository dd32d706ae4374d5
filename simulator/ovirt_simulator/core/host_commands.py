"""What one can do with a host: maintenance, another cluster, its end; and what can happen to it."""

from __future__ import annotations

from . import refusals
from .backend import Backend
from .entities import ADMIN, Caller, Host, Job
from .event_codes import EventCode
from .maintenance import Maintenance
from .outages import Outages
from .rejections import existing

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
_CAN_GO = {"maintenance", "non_responsive", "down", "install_failed", "non_operational"}
_CAN_COME = {"maintenance", "preparing_for_maintenance", "non_operational", "non_responsive", "error", "down"}


class HostCommands:
    """Commands on hosts. All but `fail` and `recover`, which are no engine's, raise `Rejected`."""

    def __init__(self, backend: Backend, maintenance: Maintenance, outages: Outages) -> None:
        self._backend = backend
        self._state = backend.state
        self._maintenance = maintenance
        self._outages = outages

    def deactivate(self, host_id: str, *, reason: str = "", caller: Caller = ADMIN) -> Job:
        """Put the host into maintenance: its VMs migrate away first. One that prepares is drained again."""
        with self._backend.lock:
            host = self.check_deactivation(host_id, internal=False)
            job = self._backend.jobs.start(f"Moving Host(s) {host.name} to Maintenance", caller)
            self._maintenance.begin(host_id, job, caller, reason=reason)
            return job

    def check_deactivation(self, host_id: str, *, internal: bool) -> Host:
        """Give the host if it may go into maintenance; `internal` is an order of the engine's own."""
        host = self._host(host_id, "maintenance")
        vms = self._state.vms_on(host_id)
        if host.status not in _CAN_LEAVE:
            raise refusals.host_in_maintenance()
        immovable = {"pinned", "user_migratable"} if internal else {"pinned"}
        if staying := [vm.name for vm in vms if vm.affinity in immovable]:
            raise refusals.host_has_immovable_vms(staying)
        if host.status in _WITHOUT_VMS and vms:
            raise refusals.host_not_operational()
        return host

    def activate(self, host_id: str, *, caller: Caller = ADMIN) -> Job:
        """Bring the host up from maintenance or trouble."""
        with self._backend.lock:
            host = self._host(host_id, "activate")
            if host.status not in _CAN_COME:
                raise refusals.host_already_up()
            self._backend.audit_log.log(EventCode.VDS_ACTIVATE, caller, host=host)
            job = self._backend.jobs.start(f"Invoking Activate Host {host.name}", caller)
            self._maintenance.activate(host_id, job)
            return job

    def fail(self, host_id: str) -> None:
        """Let the host crash: it stops answering, is fenced, and its HA VMs restart elsewhere.

        Raises `NotFound`.
        """
        with self._backend.lock:
            self._known(host_id)
            self._outages.fail(host_id)

    def recover(self, host_id: str) -> None:
        """Let a crashed host come back; VMs that were not yet declared down are found running.

        Raises `NotFound`.
        """
        with self._backend.lock:
            self._known(host_id)
            self._outages.recover(host_id)

    def _host(self, host_id: str, action: str) -> Host:
        host = self._state.hosts.get(host_id)
        if host is None:
            raise refusals.host_not_found(action)
        return host

    def _known(self, host_id: str) -> None:
        existing(self._state.hosts, host_id)
