"""Upgrades: the mark of a cluster while others carry one out, and updates of hosts, installed on empty ones.

Source: the engine's StartClusterUpgradeCommand, UpdateClusterUpgradeCommand, FinishClusterUpgradeCommand,
HostUpgradeCheckCommand, UpgradeHostCommand, UpgradeHostInternalCommand and HostUpgradeCallback.
"""

from typing import Any

from msgspec.structs import replace

from ovirt_simulator.core import rejections
from ovirt_simulator.core.backend import Backend, Commands, locked
from ovirt_simulator.core.commands.hosts import HostCommands
from ovirt_simulator.core.entities import ADMIN, SYSTEM, Caller, Cluster, Job, Record
from ovirt_simulator.core.events import EventCode, EventType
from ovirt_simulator.core.rejections import Rejected, existing
from ovirt_simulator.core.settings import UpgradeFault


class UpgradeCommands(Commands):
    """Commands on clusters; all raise `NotFound`, and `progress` also `Rejected`."""

    @locked
    def start(self, cluster_id: str, *, caller: Caller = ADMIN) -> Job:
        """Mark the cluster, unless it is marked already."""
        cluster = existing(self._state.clusters, cluster_id)
        if cluster.upgrade_mode:
            self._log(EventCode.USER_START_CLUSTER_UPGRADE_FAILED, caller, cluster=cluster)
            raise rejections.bad_parameters(f"Failed to set upgrade running flag on cluster '{cluster_id}'.")
        return self._change(
            cluster,
            EventCode.USER_START_CLUSTER_UPGRADE,
            caller,
            upgrade_mode=True,
            upgrade_percent=0,
            upgrade_correlation_id=caller.correlation_id,
        )

    @locked
    def progress(self, cluster_id: str, percent: int, *, caller: Caller = ADMIN) -> Job:
        """Say how far it is; only who began it may, by the correlation id."""
        cluster = existing(self._state.clusters, cluster_id)
        if not cluster.upgrade_mode:
            raise rejections.bad_parameters("Cannot update progress, cluster upgrade has not been started.")
        if not 0 <= percent <= 100:
            raise rejections.bad_parameters(
                "Cannot update upgrade percent complete, the value needs to be in the range of 0 to 100."
            )
        if caller.correlation_id != cluster.upgrade_correlation_id:
            raise rejections.bad_parameters(
                "Cannot update progress, given correlation id does not match the current update"
                " correlation id."
            )
        code = EventCode.USER_UPDATE_CLUSTER_UPGRADE
        return self._change(cluster, code, caller, upgrade_percent=percent)

    @locked
    def finish(self, cluster_id: str, *, caller: Caller = ADMIN) -> Job:
        """Take the mark away, also one that another made; whose it was stays."""
        return self._change(
            existing(self._state.clusters, cluster_id),
            EventCode.USER_FINISH_CLUSTER_UPGRADE,
            caller,
            upgrade_mode=False,
            upgrade_percent=0,
        )

    def _change(self, cluster: Cluster, code: EventType, caller: Caller, **changes: Any) -> Job:
        self._state.put(self._state.clusters, replace(cluster, **changes))
        self._log(code, caller, cluster=cluster)
        return self._backend.jobs.note(f"Upgrading Cluster {cluster.name}", caller)


_WORKING = {"up", "non_operational", "maintenance"}
#: What there is to be updated, whatever the host.
_PACKAGES = "vdsm"


class _Upgrade(Record, frozen=True):
    """An upgrade under way."""

    #: Whether the host is to work again in the end.
    activate: bool
    reboot: bool
    job: Job
    caller: Caller


class HostUpgrades(Commands):
    """Commands on hosts; all but `offer`, which is no engine's, raise `Rejected`."""

    def __init__(self, backend: Backend, hosts: HostCommands) -> None:
        super().__init__(backend)
        self._hosts = hosts

    @locked
    def offer(self, host_id: str) -> None:
        """Let there be updates for the host, which the next check finds. Raises `NotFound`."""
        existing(self._state.hosts, host_id)
        self._change_host(host_id, updates_offered=True)

    @locked
    def check(self, host_id: str, *, caller: Caller = ADMIN) -> Job:
        """Look for updates: an event reports, some time later, whether there are any."""
        host = self._hosts.known(host_id, "check for upgrade of")
        if host.status not in _WORKING:
            raise rejections.conflict(
                "Cannot check for upgrade Host. Valid Host statuses for upgrade check are Up or"
                " Non-Operational."
            )
        self._log(EventCode.HOST_AVAILABLE_UPDATES_STARTED, caller, host=host_id)
        job = self._backend.jobs.start(f"Checking for available updates on Host {host.name}", caller)
        seconds = self._backend.settings.update_check_seconds
        self._backend.after(seconds, lambda: self._checked(host_id, job, caller))
        return job

    @locked
    def upgrade(self, host_id: str, *, reboot: bool = True, caller: Caller = ADMIN) -> Job:
        """Install what there is: the host is drained first, and comes back as it was."""
        host = self._hosts.known(host_id, "upgrade")
        if host.status not in _WORKING:
            raise rejections.conflict(
                "Cannot upgrade Host. Valid Host statuses for upgrade are Up, Maintenance, and"
                " Non-Operational."
            )
        if not host.update_available:
            raise rejections.conflict("Cannot upgrade Host. There are no available updates for the host.")
        self._log(EventCode.HOST_UPGRADE_STARTED, caller, host=host_id)
        job = self._backend.jobs.start(f"Upgrading Host {host.name}", caller)
        activate = host.status != "maintenance"
        upgrade = _Upgrade(activate=activate, reboot=reboot, job=job, caller=caller)
        if activate and not self._drain(host_id, upgrade):
            self._fail(host_id, job, caller)
        else:
            self._watch_empty(host_id, upgrade)
        return job

    def _drain(self, host_id: str, upgrade: _Upgrade) -> bool:
        """Empty the host by the engine's own order; one whose VMs cannot all go works on."""

        def give_up() -> None:
            self._hosts.bring_up(host_id, upgrade.job)

        try:
            host = self._hosts.check_deactivation(host_id, internal=True)
        except Rejected:
            return False
        job = self._backend.jobs.start(f"Moving Host(s) {host.name} to Maintenance", upgrade.caller)
        self._hosts.begin_maintenance(host_id, job, upgrade.caller, internal=True, failed=give_up)
        return True

    def _watch_empty(self, host_id: str, upgrade: _Upgrade) -> None:
        """Wait until the host is empty; what comes between ends the upgrade."""
        status = self._state.hosts[host_id].status
        if status not in {"preparing_for_maintenance", "maintenance"}:
            self._fail(host_id, upgrade.job, upgrade.caller)
        elif status == "maintenance":
            self._change_host(host_id, status="installing")
            seconds = self._backend.settings.host_installation_seconds
            self._backend.after(seconds, lambda: self._installed(host_id, upgrade))
        else:
            seconds = self._backend.settings.refresh_seconds
            self._backend.after(seconds, lambda: self._watch_empty(host_id, upgrade))

    def _installed(self, host_id: str, upgrade: _Upgrade) -> None:
        if self._state.hosts[host_id].status != "installing":
            self._fail(host_id, upgrade.job, upgrade.caller)
            return
        fault = self._backend.faults.take(UpgradeFault, host_id)
        if fault.fail:
            self._change_host(host_id, status="install_failed")
            self._fail(host_id, upgrade.job, upgrade.caller)
            return
        self._change_host(host_id, update_available=False, updates_offered=False)
        if not upgrade.reboot:
            self._log(EventCode.HOST_UPGRADE_FINISHED, SYSTEM, host=host_id)
            self._booted(host_id, upgrade)
            return
        self._change_host(host_id, status="reboot")
        self._log(EventCode.HOST_UPGRADE_FINISHED_AND_WILL_BE_REBOOTED, SYSTEM, host=host_id)
        self._log(EventCode.SYSTEM_SSH_HOST_RESTART, SYSTEM, host=host_id)
        settings = self._backend.settings
        seconds = settings.host_boot_seconds
        if fault.stay_away:
            self._backend.failed_hosts.add(host_id)
            seconds = settings.host_reboot_timeout_seconds
        self._backend.after(seconds, lambda: self._booted(host_id, upgrade))

    def _booted(self, host_id: str, upgrade: _Upgrade) -> None:
        if self._state.hosts[host_id].status not in {"installing", "reboot"}:
            self._backend.jobs.end(upgrade.job, "aborted")
        elif host_id in self._backend.failed_hosts:
            self._log(EventCode.VDS_FAILURE, SYSTEM, host=host_id)
            self._change_host(host_id, status="non_responsive")
            self._backend.jobs.end(upgrade.job, "failed")
        elif upgrade.activate:
            self._hosts.bring_up(host_id, upgrade.job)
        else:
            self._change_host(host_id, status="maintenance")
            self._backend.jobs.end(upgrade.job, "finished")

    def _checked(self, host_id: str, job: Job, caller: Caller) -> None:
        host = self._state.hosts[host_id]
        message = "no updates found."
        if host.updates_offered:
            message = f"found updates for packages {_PACKAGES}"
            self._log(
                EventCode.HOST_UPDATES_ARE_AVAILABLE_WITH_PACKAGES, SYSTEM, host=host_id, packages=_PACKAGES
            )
        self._change_host(host_id, update_available=host.updates_offered)
        self._log(EventCode.HOST_AVAILABLE_UPDATES_FINISHED, caller, host=host_id, message=message)
        self._backend.jobs.end(job, "finished")

    def _fail(self, host_id: str, job: Job, caller: Caller) -> None:
        self._backend.jobs.end(job, "failed")
        self._log(EventCode.HOST_UPGRADE_FAILED, caller, host=host_id)
