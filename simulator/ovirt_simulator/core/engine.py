"""The simulated engine: what the REST face, the command line and tests drive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial

from ovirt_placement import model
from ovirt_simulator.core import loading
from ovirt_simulator.core.backend import Backend
from ovirt_simulator.core.commands.external_events import EventCommands
from ovirt_simulator.core.commands.groups import AffinityCommands, LabelCommands
from ovirt_simulator.core.commands.hosts import HostCommands
from ovirt_simulator.core.commands.migrations import Migrations
from ovirt_simulator.core.commands.outages import Outages, Restarts
from ovirt_simulator.core.commands.policies import PolicyCommands
from ovirt_simulator.core.commands.running import Running
from ovirt_simulator.core.commands.upgrades import HostUpgrades, UpgradeCommands
from ovirt_simulator.core.commands.vms import VmCommands
from ovirt_simulator.core.entities import SYSTEM
from ovirt_simulator.core.events import Action
from ovirt_simulator.core.faults import Faults
from ovirt_simulator.core.queries import Queries
from ovirt_simulator.core.settings import USUAL, Settings
from ovirt_simulator.scheduler.affinity_enforcement import AffinityEnforcement
from ovirt_simulator.scheduler.external import ExternalScheduler, ExternalUnits
from ovirt_simulator.scheduler.filters import note_load
from ovirt_simulator.scheduler.placing import Scheduler

_CAN_START = {"down", "suspended"}


def resume(backend: Backend, running: Running, migrations: Migrations, hosts: HostCommands) -> None:
    """Take on every VM and host that is in the middle of something, and every start that is pending."""
    with backend.lock:
        for host in tuple(backend.state.hosts.values()):
            if host.status == "preparing_for_maintenance":
                job = backend.jobs.start(f"Moving Host {host.name} to Maintenance", SYSTEM)
                hosts.begin_maintenance(host.id, job, SYSTEM)
        for vm in tuple(backend.state.vms.values()):
            if vm.status == "migrating":
                migrations.resume(vm)
            else:
                running.resume(vm)
        for pending in tuple(backend.state.pending.values()):
            if backend.state.vms[pending.vm].status in _CAN_START:
                _launch_soon(backend, running, pending.vm, pending.host)
            else:
                backend.state.drop_pending(pending.vm)


def _launch_soon(backend: Backend, running: Running, vm_id: str, host_id: str) -> None:
    def launch() -> None:
        pending = backend.state.pending.get(vm_id)
        if pending is not None and backend.state.vms[vm_id].status in _CAN_START:
            running.launch(vm_id, host_id, None, SYSTEM)

    backend.after(backend.settings.launch_seconds, launch)


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
        outages = Outages(backend, running, migrations, restarts)
        self.queries = Queries(backend)
        self.vms = VmCommands(backend, running, migrations, restarts, scheduler)
        self.upgrades = UpgradeCommands(backend)
        self.hosts = HostCommands(backend, migrations, scheduler, outages)
        self.host_upgrades = HostUpgrades(backend, self.hosts)
        self.affinity_groups = AffinityCommands(backend)
        self.labels = LabelCommands(backend)
        self.policies = PolicyCommands(backend)
        self.events = EventCommands(backend)
        resume(backend, running, migrations, self.hosts)
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
            (settings.affinity_enforcement_seconds, AffinityEnforcement(backend, scheduler, migrate).cycle),
            (settings.load_balancing_seconds, partial(external.balance_all, migrate)),
        ):
            if seconds is not None:
                backend.every(seconds, cycle)

    @property
    def faults(self) -> Faults:
        return self._backend.faults

    def advance(self, seconds: float) -> None:
        """Let simulated time pass, and do all that falls due, in order."""
        with self._advancing:
            with self._backend.lock:
                until = self._backend.timeline.elapsed + seconds
            while True:
                with self._backend.lock:
                    action = self._backend.timeline.next_due(until)
                if action is None:
                    return
                action()

    def snapshot(self) -> model.Snapshot:
        """Give the present state as a state file holds it."""
        with self._backend.lock:
            return loading.snapshot(self._backend.state)
