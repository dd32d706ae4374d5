"""Hosts: maintenance, for which VMs migrate away first, all in one batch or none; activation, and updates.

Source: the engine's MaintenanceNumberOfVdssCommand, MaintenanceVdsCommand, MigrateMultipleVmsCommand and
HostMonitoring, with the configuration value IgnoreVmToVmAffinityForHostMaintenance, which is true from
compatibility version 4.3 on; HostUpgradeCheckCommand, UpgradeHostCommand, UpgradeHostInternalCommand and
HostUpgradeCallback.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ovirt_simulator.core import messages
from ovirt_simulator.core.affinity import scheduled_together
from ovirt_simulator.core.backend import Backend, Commands, UpgradeFault, locked
from ovirt_simulator.core.commands.migrations import Migrations, leaving
from ovirt_simulator.core.commands.outages import Outages, Restarts
from ovirt_simulator.core.entities import ADMIN, SYSTEM, Caller, Host, Job, Vm
from ovirt_simulator.core.messages import EventCode, Rejected, existing
from ovirt_simulator.scheduler.filters import Request

_MOVABLE = {"up", "powering_up", "paused", "reboot_in_progress"}
#: What may go into maintenance, or may not because it is there.
_SETTLED = {"up", "maintenance", "non_responsive", "down", "error", "preparing_for_maintenance"}
_SETTLED |= {"non_operational", "install_failed"}
#: What is not to be activated, and why: some hold the host's lock.
_BUSY = "Related operation is currently in progress. Please try again later."
_INACTIVE = dict.fromkeys(("installing", "reboot", "unassigned", "initializing"), _BUSY)
_INACTIVE |= {"up": "Host in Up status.", "non_responsive": "Host is in non responsive state."}


class Emptying(NamedTuple):
    """An order to empty a host."""

    host_id: str
    caller: Caller
    reason: str = ""
    #: An order of the engine's own.
    internal: bool = False
    #: Called if not all VMs can be scheduled.
    failed: Callable[[], object] = lambda: None


class HostCommands(Outages):
    """Takes hosts into maintenance and back. The commands, all but `fail` and `recover`, raise `Rejected`."""

    def __init__(self, backend: Backend, migrations: Migrations, restarts: Restarts) -> None:
        super().__init__(backend, migrations, restarts)
        self._scheduler = migrations.scheduler
        #: The attempt that counts for each host that prepares: a later one takes over.
        self._attempts: dict[str, Job] = {}

    @locked
    def deactivate(self, host_id: str, *, reason: str = "", caller: Caller = ADMIN) -> Job:
        """Put the host into maintenance: its VMs migrate away first. One that prepares is drained again."""
        host = self.check_deactivation(host_id, internal=False)
        job = self._jobs.start(f"Moving Host(s) {host.name} to Maintenance", caller)
        self.begin_maintenance(Emptying(host_id, caller, reason), job)
        return job

    def check_deactivation(self, host_id: str, *, internal: bool) -> Host:
        """Give the host if it may go into maintenance; `internal` is an order of the engine's own."""
        host, mode = self.known(host_id, "maintenance"), "Host to Maintenance mode"
        vms = self._state.vms_on(host_id)
        if host.status not in _SETTLED:
            raise messages.conflict(f"Cannot switch {mode}, Host is not operational.")
        immovable = {"pinned", "user_migratable"} if internal else {"pinned"}
        if staying := [vm.name for vm in vms if vm.affinity in immovable and not vm.hosted_engine]:
            many = f"Cannot switch the following Hosts to Maintenance mode: {host.name}.\nOne or more running"
            named = f"The non-migratable VMs are: {' , '.join(staying)}."
            raise messages.conflict(f"{many} VMs are indicated as non-migratable. {named}")
        if host.status == "maintenance":
            raise messages.cannot("switch", "Host is already in Maintenance mode.", mode)
        if host.status == "non_responsive" and vms:
            still = "Host still has running VMs on it and is in Non Responsive state."
            raise messages.conflict(f"Cannot switch {mode}.\n{still}")
        if vms and not any(one.up and one is not host for one in self._state.hosts_of(host.cluster)):
            runs = f"have running VMs and cannot be switched to maintenance mode: {host.name}."
            ensure = "Please ensure that the following Clusters have at least one Host in UP state:"
            name = self._state.clusters[host.cluster].name
            raise messages.conflict(f"The following Hosts {runs}\n{ensure} {name}.")
        return host

    @locked
    def activate(self, host_id: str, *, caller: Caller = ADMIN) -> Job:
        """Bring the host up from maintenance or trouble."""
        host = self.known(host_id, "activate")
        if host.status in _INACTIVE:
            raise messages.cannot("activate", _INACTIVE[host.status], "Host")
        self._log(EventCode.VDS_ACTIVATE, caller, host=host)
        self._log(EventCode.SYSTEM_UPDATE_CLUSTER, SYSTEM, host=host)
        job = self._jobs.start(f"Invoking Activate Host {host.name}", caller)
        self.bring_up(host_id, job)
        return job

    def known(self, host_id: str, action: str) -> Host:
        """Give the host that an action is asked of."""
        host = self._state.hosts.get(host_id)
        if host is None:
            raise messages.bad_parameters(f"Cannot {action} Host. Invalid Host Id.")
        return host

    # -- What the commands begin, and other commands as well; the caller holds the lock.

    def begin_maintenance(self, order: Emptying, job: Job) -> None:
        """Let the host take no more VMs, and send those it has away."""
        host_id = order.host_id
        self._change_host(host_id, status="preparing_for_maintenance")
        self._attempts[host_id] = job
        for migration in self._migrations.of_host(host_id):
            if migration.target == host_id and migration.active:
                self._migrations.withdraw(migration)

        if self._state.vms_on(host_id):
            self._backend.unlocked(0.0, partial(self._drain_and_log, order))
        else:
            self._log_end(order, scheduled=True)
        self._backend.go_through(self._watch_drained(host_id, job))

    def bring_up(self, host_id: str, job: Job) -> None:
        """Bring the host up; one that only prepares for maintenance is up at once."""
        if self._state.hosts[host_id].status == "preparing_for_maintenance":
            self._up(host_id, job)
            return
        self._change_host(host_id, status="unassigned")
        self._backend.after(self._settings.host_activation_seconds, lambda: self._activated(host_id, job))

    def _drain_and_log(self, order: Emptying) -> None:
        scheduled = self._drain(order.host_id, order.caller, forced=not order.internal)
        with self._backend.lock:
            if scheduled is not None:
                self._log_end(order, scheduled=scheduled)
            if scheduled is False:
                order.failed()

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
            # Rules between VMs the engine does without here, where it may.
            possible = [
                vm for vm in vms if self._scheduler.finds(_away(host_id, (vm.id,), self._drops_rules([vm])))
            ]
            groups = scheduled_together(self._state, [vm.id for vm in possible])
        unassigned = [group for group in groups if not self._schedule(group, host_id, caller)]
        alone = [vm_id for group in unassigned for vm_id in group] if self._drops_rules(vms) else []
        for vm_id in alone:
            self._schedule((vm_id,), host_id, caller, without_vm_affinity=True)
        return len(possible) == len(vms)

    def _schedule(
        self, group: tuple[str, ...], host_id: str, caller: Caller, *, without_vm_affinity: bool = False
    ) -> bool:
        def send(target: str) -> None:
            for vm in [self._state.vms[vm_id] for vm_id in group]:
                if vm.host == host_id and vm.status in _MOVABLE and self._is_preparing(host_id):
                    # No reason is given, though the engine's code has words for it.
                    self._migrations.begin(leaving(vm, target, caller, reason=""))

        return self._scheduler.tries(_away(host_id, group, without_vm_affinity), send)

    def _drops_rules(self, vms: Sequence[Vm]) -> bool:
        """Whether VMs may be scheduled without hard rules between VMs: of clusters from version 4.3 on."""
        versions = {self._state.clusters[vm.cluster].compatibility for vm in vms}
        return all(tuple(map(int, version.split("."))) >= (4, 3) for version in versions)

    def _may_migrate(self, vm: Vm, *, forced: bool) -> bool:
        if vm.status not in _MOVABLE or vm.id in self._backend.vm_locks:
            return False
        return vm.affinity == "migratable" or (forced and vm.affinity == "user_migratable")

    def _log_end(self, order: Emptying, *, scheduled: bool) -> None:
        """Log that the command has ended; no event says when the host arrives in maintenance."""
        done, failed = EventCode.VDS_MAINTENANCE, EventCode.VDS_MAINTENANCE_FAILED
        if not order.internal:
            reasoned, silent = EventCode.USER_VDS_MAINTENANCE, EventCode.USER_VDS_MAINTENANCE_WITHOUT_REASON
            done = reasoned if order.reason else silent
            failed = EventCode.USER_VDS_MAINTENANCE_MIGRATION_FAILED
        self._log(done if scheduled else failed, order.caller, host=order.host_id, reason=order.reason)

    def _watch_drained(self, host_id: str, job: Job) -> Iterator[float]:
        """Look again and again whether the host is empty; after a while, try what is left once more."""
        drained = self._backend.elapsed
        while self._is_preparing(host_id) and self._attempts.get(host_id) is job:
            vms, now = self._state.vms_on(host_id), self._backend.elapsed
            if not vms and not self._state.incoming(host_id):
                self._change_host(host_id, status="maintenance")
                self._jobs.end(job, "finished")
                return
            idle = not any(vm.status == "migrating" for vm in vms)
            if idle and now - drained >= self._settings.retry_seconds:
                drained = now
                # The engine's own order: what a user's order forces refuses it now.
                order = Emptying(host_id, SYSTEM, internal=True)
                self._backend.unlocked(0.0, partial(self._drain_and_log, order))
            yield self._settings.refresh_seconds
        self._jobs.end(job, "aborted")

    def _activated(self, host_id: str, job: Job) -> None:
        host = self._state.hosts[host_id]
        if host.status != "unassigned":
            self._jobs.end(job, "aborted")
        elif host_id in self._backend.failed_hosts:
            self._log(EventCode.VDS_FAILURE, SYSTEM, host=host)
            self._change_host(host_id, status="non_responsive")
            self._jobs.end(job, "failed")
        else:
            self._log(EventCode.VDS_DETECTED, SYSTEM, host=host, status="Up")
            self._backend.after_event(lambda: self._up(host_id, job))

    def _up(self, host_id: str, job: Job) -> None:
        if host_id not in self._backend.failed_hosts:
            self._change_host(host_id, status="up")
            self.restore_vms(host_id)
        self._jobs.end(job, "finished")

    def _is_preparing(self, host_id: str) -> bool:
        return self._state.hosts[host_id].status == "preparing_for_maintenance"


def _away(host_id: str, vm_ids: tuple[str, ...], without_vm_affinity: bool) -> Request:
    blacklist = frozenset({host_id})
    return Request(vm_ids=vm_ids, blacklist=blacklist, without_vm_affinity=without_vm_affinity)


_WORKING = {"up", "non_operational", "maintenance", "install_failed"}
#: What there is to be updated, whatever the host.
_PACKAGES = "vdsm"


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
            valid = "Valid Host statuses for upgrade check are Up or Non-Operational."
            raise messages.cannot("check for upgrade", valid, "Host")
        self._log(EventCode.HOST_AVAILABLE_UPDATES_STARTED, caller, host=host_id)
        job = self._jobs.start(f"Checking for available updates on Host {host.name}", caller)
        self._backend.go_through(self._find_updates(host_id, job, caller))
        return job

    @locked
    def upgrade(self, host_id: str, *, reboot: bool = True, caller: Caller = ADMIN) -> Job:
        """Install what there is: the host is drained first, and comes back as it was."""
        host = self._hosts.known(host_id, "upgrade")
        if host.status not in _WORKING:
            valid = "Valid Host statuses for upgrade are Up, Maintenance, and Non-Operational."
            raise messages.cannot("upgrade", valid, "Host")
        if not host.update_available:
            raise messages.cannot("upgrade", "There are no available updates for the host.", "Host")
        self._log(EventCode.HOST_UPGRADE_STARTED, caller, host=host_id)
        job = self._jobs.start(f"Upgrading Host {host.name}", caller)
        steps = self._upgrade(host_id, job, caller, activate=host.status != "maintenance", reboot=reboot)
        self._backend.go_through(steps)
        return job

    def _upgrade(
        self, host_id: str, job: Job, caller: Caller, *, activate: bool, reboot: bool
    ) -> Iterator[float]:
        """Install, and let the host come back as it was: to work again, if it is to be activated."""
        fault = yield from self._install(host_id, job, caller, activate=activate)
        if fault is None:
            self._jobs.end(job, "failed")
            self._log(EventCode.HOST_UPGRADE_FAILED, caller, host=host_id)
            return
        if reboot:
            self._change_host(host_id, status="reboot")
            self._log(EventCode.HOST_UPGRADE_FINISHED_AND_WILL_BE_REBOOTED, SYSTEM, host=host_id)
            self._log(EventCode.SYSTEM_SSH_HOST_RESTART, SYSTEM, host=host_id)
            if fault.stay_away:
                self._backend.failed_hosts.add(host_id)
            waits, boots = self._settings.host_reboot_timeout_seconds, self._settings.host_boot_seconds
            yield waits if fault.stay_away else boots
        else:
            self._log(EventCode.HOST_UPGRADE_FINISHED, SYSTEM, host=host_id)
        if self._state.hosts[host_id].status not in {"installing", "reboot"}:
            self._jobs.end(job, "aborted")
        elif host_id in self._backend.failed_hosts:
            self._log(EventCode.VDS_FAILURE, SYSTEM, host=host_id)
            self._change_host(host_id, status="non_responsive")
            self._jobs.end(job, "failed")
        elif activate:
            self._hosts.bring_up(host_id, job)
        else:
            self._change_host(host_id, status="maintenance")
            self._jobs.end(job, "finished")

    def _install(
        self, host_id: str, job: Job, caller: Caller, *, activate: bool
    ) -> Generator[float, None, UpgradeFault | None]:
        """Empty the host and install; None if that fails or something comes between, else what comes next."""
        if activate and not self._drain(host_id, job, caller):
            return None
        while self._state.hosts[host_id].status == "preparing_for_maintenance":
            yield self._settings.refresh_seconds
        if self._state.hosts[host_id].status != "maintenance":
            return None
        self._change_host(host_id, status="installing")
        yield self._settings.host_installation_seconds
        if self._state.hosts[host_id].status != "installing":
            return None
        fault = self._backend.faults.pop_fault(UpgradeFault, host_id)
        if fault.fail:
            self._change_host(host_id, status="install_failed")
            return None
        self._change_host(host_id, update_available=False, updates_offered=False)
        return fault

    def _drain(self, host_id: str, upgrading: Job, caller: Caller) -> bool:
        """Empty the host by the engine's own order; one whose VMs cannot all go works on."""
        try:
            host = self._hosts.check_deactivation(host_id, internal=True)
        except Rejected:
            return False
        job = self._jobs.start(f"Moving Host(s) {host.name} to Maintenance", caller)
        give_up = partial(self._hosts.bring_up, host_id, upgrading)
        self._hosts.begin_maintenance(Emptying(host_id, caller, internal=True, failed=give_up), job)
        return True

    def _find_updates(self, host_id: str, job: Job, caller: Caller) -> Iterator[float]:
        yield self._settings.update_check_seconds
        host, message = self._state.hosts[host_id], "no updates found."
        if host.updates_offered:
            message, code = (
                f"found updates for packages {_PACKAGES}",
                EventCode.HOST_UPDATES_ARE_AVAILABLE_WITH_PACKAGES,
            )
            self._log(code, SYSTEM, host=host_id, packages=_PACKAGES)
        self._change_host(host_id, update_available=host.updates_offered)
        self._log(EventCode.HOST_AVAILABLE_UPDATES_FINISHED, caller, host=host_id, message=message)
        self._jobs.end(job, "finished")
