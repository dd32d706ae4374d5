"""The simulated engine: what the REST face, the command line and tests drive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from ovirt_placement import model

from ..scheduler.affinity_enforcement import AffinityEnforcement
from ..scheduler.external import ExternalScheduler
from ..scheduler.external_units import ExternalUnits
from ..scheduler.ha_check import HaCheck
from ..scheduler.host_load import HostLoad
from ..scheduler.load_balancing import LoadBalancing
from ..scheduler.placing import Scheduler
from . import loading, resuming, saving
from .access_commands import AccessCommands
from .affinity_commands import AffinityCommands
from .backend import Backend
from .devices import DeviceCommands
from .draining import Draining
from .event_commands import EventCommands
from .faults import Faults
from .host_commands import HostCommands
from .host_upgrades import HostUpgrades
from .job_commands import JobCommands
from .label_commands import LabelCommands
from .maintenance import Maintenance
from .migrations import Migrations
from .outages import Outages
from .policy_commands import PolicyCommands
from .queries import Queries
from .restarts import Restarts
from .running import Running
from .settings import USUAL, Settings
from .tag_commands import TagCommands
from .timeline import Action
from .upgrade_commands import UpgradeCommands
from .vm_commands import VmCommands


def _at_once(action: Action) -> None:
    action()


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
        migrations = Migrations(backend, running)
        restarts = Restarts(backend, running, scheduler)
        outages = Outages(backend, running, migrations, restarts)
        self.queries = Queries(backend, scheduler)
        self.vms = VmCommands(backend, running, migrations, restarts, scheduler)
        self.devices = DeviceCommands(backend)
        self.upgrades = UpgradeCommands(backend)
        self.jobs = JobCommands(backend)
        self.access = AccessCommands(backend)
        self.tags = TagCommands(backend)
        maintenance = Maintenance(backend, Draining(backend, migrations, scheduler), outages)
        self.hosts = HostCommands(backend, maintenance, outages)
        self.host_upgrades = HostUpgrades(backend, self.hosts, maintenance)
        self.affinity_groups = AffinityCommands(backend)
        self.labels = LabelCommands(backend)
        self.policies = PolicyCommands(backend)
        self.events = EventCommands(backend)
        resuming.resume(backend, running, migrations, maintenance)
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
        background: Callable[[Action], object] = _at_once,
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
        host_load = HostLoad(backend)
        host_load.cycle()
        for seconds, cycle in (
            (settings.statistics_seconds, host_load.cycle),
            (settings.affinity_enforcement_seconds, AffinityEnforcement(backend, scheduler, migrate).cycle),
            (settings.load_balancing_seconds, LoadBalancing(backend, external, migrate).cycle),
            (settings.ha_check_seconds, HaCheck(backend).cycle),
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
            return saving.snapshot(self._backend.state)
