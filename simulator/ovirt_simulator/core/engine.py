"""The simulated engine: what the REST face, the command line and tests drive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any
from zlib import crc32

from ovirt_placement import model
from ovirt_simulator.core import affinity, entities, loading, messages
from ovirt_simulator.core.backend import USUAL, Action, Backend, Commands, Settings, locked
from ovirt_simulator.core.commands.clusters import PolicyCommands, UpgradeCommands
from ovirt_simulator.core.commands.groups import AffinityCommands, LabelCommands
from ovirt_simulator.core.commands.hosts import Emptying, HostCommands, HostUpgrades
from ovirt_simulator.core.commands.migrations import Migrations
from ovirt_simulator.core.commands.outages import Restarts
from ovirt_simulator.core.commands.running import Running
from ovirt_simulator.core.commands.vms import VmCommands
from ovirt_simulator.core.messages import EventCode
from ovirt_simulator.core.state import State, huge_pages, used_cores, used_mb
from ovirt_simulator.scheduler.external import ExternalScheduler, ExternalUnits
from ovirt_simulator.scheduler.filters import note_load
from ovirt_simulator.scheduler.placing import AffinityEnforcement, Scheduler

_CAN_START = {"down", "suspended"}


def resume(backend: Backend, migrations: Migrations, hosts: HostCommands) -> None:
    """Take on every VM and host that is in the middle of something, and every start that is pending."""
    state, settings = backend.state, backend.settings

    def launch(pending: model.Pending) -> None:
        waits = state.pending.get(pending.vm) is not None
        if waits and state.vms[pending.vm].status in _CAN_START:
            migrations.running.launch(pending.vm, pending.host, None, entities.SYSTEM)

    with backend.lock:
        for host in tuple(state.hosts.values()):
            if host.status == "preparing_for_maintenance":
                job = backend.jobs.start(f"Moving Host {host.name} to Maintenance", entities.SYSTEM)
                hosts.begin_maintenance(Emptying(host.id, entities.SYSTEM), job)
        for vm in tuple(state.vms.values()):
            if vm.status == "migrating":
                migrations.resume(vm)
            else:
                migrations.running.resume(vm)
        for pending in tuple(state.pending.values()):
            if state.vms[pending.vm].status in _CAN_START:
                backend.after(settings.launch_seconds, partial(launch, pending))
            else:
                state.drop_pending(pending.vm)


class Engine:
    """One engine: a state machine without a clock of its own, safe to use from many threads.

    `queries` reads; `vms`, `hosts`, `affinity_groups`, `labels`, `policies`, `events` and all the others
    command; `faults` says what shall go wrong. Nothing takes time but `advance`, and waiting for the external
    scheduler.
    """

    def __init__(self, backend: Backend, external: ExternalUnits) -> None:
        self._backend = backend
        self._advancing = threading.Lock()
        scheduler = Scheduler(backend, external)
        running = Running(backend)
        migrations = Migrations(backend, running, scheduler)
        restarts = Restarts(backend, running, scheduler)
        self.faults = backend.faults
        self.queries = Queries(backend)
        self.vms = VmCommands(backend, migrations, restarts)
        self.upgrades = UpgradeCommands(backend)
        self.hosts = HostCommands(backend, migrations, restarts)
        self.host_upgrades = HostUpgrades(backend, self.hosts)
        self.affinity_groups = AffinityCommands(backend)
        self.labels = LabelCommands(backend)
        self.policies = PolicyCommands(backend)
        self.events = EventCommands(backend)
        resume(backend, migrations, self.hosts)
        self._start_loops(scheduler, external)

    @classmethod
    def from_snapshot(
        cls,
        snapshot: model.Snapshot,
        *,
        clock: datetime,
        seed: int = 0,
        settings: Settings = USUAL,
        proxy: str | None = None,
        background: Callable[[Action], object] = lambda action: action(),
    ) -> Engine:
        """Start an engine that holds what the snapshot says.

        `clock` is the simulated time of the start. `proxy` is the URL of the external scheduler: it is asked
        for its units now, and never again. `background` runs what the engine does by itself and asks the
        scheduler for (restarting HA VMs, balancing); at once, unless a thread pool's `submit` is given.
        """
        backend = Backend(clock=clock, seed=seed, settings=settings, background=background)
        loading.load(backend.state, snapshot, clock)
        external = ExternalUnits(backend, None if proxy is None else ExternalScheduler(proxy))
        external.discover()
        return cls(backend, external)

    def _start_loops(self, scheduler: Scheduler, external: ExternalUnits) -> None:
        backend, settings, migrate = self._backend, self._backend.settings, self.vms.migrate_by_system
        note_load(backend)
        for seconds, cycle in (
            (settings.statistics_seconds, partial(note_load, backend)),
            (settings.memory_count_seconds or None, self._count_memory),
            (settings.affinity_enforcement_seconds, AffinityEnforcement(backend, scheduler, migrate).cycle),
            (settings.load_balancing_seconds, partial(external.balance_all, migrate)),
        ):
            if seconds is not None:
                backend.every(seconds, cycle)

    def _count_memory(self) -> None:
        with self._backend.lock:
            self._backend.state.count_memory()

    def advance(self, seconds: float) -> None:
        """Let simulated time pass, and do all that falls due, in order."""
        with self._advancing:
            with self._backend.lock:
                until = self._backend.elapsed + seconds
            while True:
                with self._backend.lock:
                    action = self._backend.next_due(until)
                if action is None:
                    return
                action()

    def snapshot(self) -> model.Snapshot:
        """Give the present state as a state file holds it."""
        with self._backend.lock:
            return loading.snapshot(self._backend.state)


# -- What one can ask, besides the records: what is computed from them, and what is measured. Source: the
# engine's HostStatisticalQuery and VmStatisticalQuery.
_MIB = 1024 * 1024


class Queries(Commands):
    """Reads: the records themselves, and what follows from them."""

    @property
    def state(self) -> State:
        """The engine's records; who reads whole tables without the lock copies them first."""
        return self._state

    @property
    @locked
    def now(self) -> datetime:
        """The simulated time."""
        return self._backend.now

    @locked
    def is_broken(self, group: entities.AffinityGroup) -> bool:
        """Give the `broken` flag, computed from where the members run now."""
        return affinity.is_broken(self._state, group)

    @locked
    def jobs(self) -> tuple[entities.Job, ...]:
        return tuple(self._jobs.by_id.values())

    @locked
    def events(self) -> tuple[entities.Event, ...]:
        """Give what shows now: newest id first."""
        now = self._backend.now
        return tuple(event for event in reversed(self._backend.events.values()) if event.visible <= now)

    @locked
    def host_statistics(self, host_id: str) -> tuple[entities.Statistic, ...]:
        """Measure a host; all figures are 0 while it is not up. Raises KeyError for an unknown id.

        The engine knows used memory by whole percents only.
        """
        host = self._state.hosts[host_id]
        up = host.status == "up"
        reported = up and not (host.measured and host.cpu_percent is None)
        total = host.memory_mb * _MIB if up else 0
        used = int(total * self._used_percent(host)) // 100 if up else 0
        busy = self._busy_percent(host) if up else 0.0
        swap = (host.swap_free_mb or 0) * _MIB if up else 0
        # Without a load average: as many processes as keep its CPU that busy.
        load = busy / 100 * host.cores if host.load_average_5m is None else host.load_average_5m
        pages, taken = host.free_huge_pages, huge_pages(self._state.vms_on(host.id))
        return (
            entities.Statistic("memory.total", total, "bytes"),
            entities.Statistic("memory.used", used, "bytes"),
            entities.Statistic("memory.free", total - used, "bytes"),
            entities.Statistic("swap.total", swap, "bytes"),
            entities.Statistic("swap.free", swap, "bytes"),
            entities.Statistic("swap.used", 0, "bytes"),
            entities.Statistic("cpu.current.user", busy * 0.8),
            entities.Statistic("cpu.current.system", busy * 0.2),
            entities.Statistic("cpu.current.idle", 100.0 - busy * 0.8 - busy * 0.2 if reported else 0.0),
            entities.Statistic("cpu.load.avg.5m", load if up else 0.0),
            *(entities.Statistic(f"hugepages.{size}.free", n, "none") for size, n in pages.items()),
            *(
                entities.Statistic(f"hugepages.{size}.total", n + taken[size], "none")
                for size, n in pages.items()
            ),
        )

    @locked
    def vm_statistics(self, vm_id: str) -> tuple[entities.Statistic, ...]:
        """Measure a VM; all figures are 0 while it is down. Raises KeyError for an unknown id."""
        vm = self._state.vms[vm_id]
        installed = vm.memory_mb * _MIB
        memory_percent, cpu_percent = (vm.usage_mem_percent or 0.0, vm.usage_cpu_percent or 0.0)
        used = int(installed * int(self._wobble(vm.id, memory_percent if vm.runs else 0.0))) // 100
        cpu = self._wobble(vm.id, cpu_percent) if vm.runs else 0.0
        return (
            entities.Statistic("memory.installed", installed, "bytes"),
            entities.Statistic("memory.used", used, "bytes"),
            entities.Statistic("memory.free", installed - used if vm.runs else 0, "bytes"),
            entities.Statistic("cpu.current.guest", cpu * 0.9),
            entities.Statistic("cpu.current.hypervisor", cpu * 0.1),
            entities.Statistic("cpu.current.total", cpu),
        )

    def _busy_percent(self, host: entities.Host) -> float:
        """Give what the host's CPU is busy with: its calm figure, and how its VMs wobble around theirs."""
        if host.cpu_percent is None:
            return 0.0
        swing = sum(used_cores(vm) * (self._wobble(vm.id, 1.0) - 1.0) for vm in self._state.vms_on(host.id))
        return min(max(host.cpu_percent + swing / host.cores * 100, 0.0), 100.0)

    def _used_percent(self, host: entities.Host) -> int:
        if host.memory_free_mb is None:
            used = sum(used_mb(vm) for vm in self._state.vms_on(host.id))
        else:
            used = host.memory_mb - host.memory_free_mb
        return min(max(round(used / host.memory_mb * 100), 0), 100)

    def _wobble(self, vm_id: str, percent: float) -> float:
        """Let a figure differ a little from report to report; before the first report it is exact."""
        report = int(self._backend.elapsed // self._settings.statistics_seconds)
        amplitude = self._settings.statistics_wobble_percent / 100
        if report == 0 or amplitude == 0:
            return percent
        dice = crc32(f"{self._backend.seed}/{vm_id}/{report}".encode()) / 2**31 - 1
        return min(max(percent * (1 + amplitude * dice), 0.0), 100.0)


# -- Events that clients add to the log. Source: the engine's AddExternalEventCommand and
# ExternalEventCommandBase.
#: The engine's MaxAuditLogMessageLength.
LONGEST_DESCRIPTION = 10000

SEVERITIES = {
    "normal": EventCode.EXTERNAL_EVENT_NORMAL,
    "warning": EventCode.EXTERNAL_EVENT_WARNING,
    "error": EventCode.EXTERNAL_EVENT_ERROR,
    "alert": EventCode.EXTERNAL_ALERT,
}


class EventCommands(Commands):
    """Commands on events; `add` raises `Rejected`."""

    @locked
    def add(
        self,
        *,
        origin: str,
        severity: str,
        custom_id: int,
        description: str,
        time: datetime | None = None,
        correlation_id: str | None = None,
        user: str | None = None,
        caller: entities.Caller = entities.ADMIN,
        **about: str | None,
    ) -> entities.Event:
        """Log an external event; origin and custom id are unique for ever.

        It may be about the `vm`, `host`, `cluster` and `data_center` of some ids; of a VM also about its host
        and cluster, and what is not there is left out. `user` is whom it is about: the author is not shown.
        """
        if origin.lower() == "ovirt":
            raise messages.bad_parameters(
                "Cannot add External Event. Illegal Origin for External Event : oVirt"
            )
        if (origin, custom_id) in {(one.origin, one.custom_id) for one in self._backend.events.values()}:
            raise messages.bad_parameters(
                "=Cannot add External Event. External Event with this custom id already exists."
            )
        state = self._state
        vm = state.vms.get(about.pop("vm", None) or "")
        known: dict[str, Any]
        known = {"host": state.hosts, "cluster": state.clusters, "data_center": state.data_centers}
        of_vm = {} if vm is None else {"host": vm.host, "cluster": vm.cluster}
        places = {name: about.get(name) or of_vm.get(name) or "" for name in known}
        found = {name: entities.reference(table.get(places[name])) for name, table in known.items()}
        return self._backend.log(
            prompt=True,
            code=SEVERITIES[severity].number,
            severity=severity,
            time=time or self._backend.now,
            description=description[:LONGEST_DESCRIPTION],
            correlation_id=correlation_id or caller.correlation_id,
            origin=origin,
            custom_id=custom_id,
            user=None if user is None else entities.Reference(id=user),
            vm=entities.reference(vm),
            template=None if vm is None else entities.template_of(vm),
            **dict[str, Any](found),
        )
