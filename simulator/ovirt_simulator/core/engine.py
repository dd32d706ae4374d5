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
from .console_commands import ConsoleCommands
from .data_center_commands import DataCenterCommands
from .device_commands import DeviceCommands
from .directory_commands import DirectoryCommands
from .disk_commands import DiskCommands
from .disk_moves import DiskMoves
from .draining import Draining
from .event_commands import EventCommands
from .faults import Faults
from .fence_commands import FenceCommands
from .host_commands import HostCommands
from .host_installation import HostInstallation
from .host_upgrades import HostUpgrades
from .instance_type_commands import InstanceTypeCommands
from .job_commands import JobCommands
from .label_commands import LabelCommands
from .mac_pool_commands import MacPoolCommands
from .maintenance import Maintenance
from .migrations import Migrations
from .network_commands import NetworkCommands
from .outages import Outages
from .policy_commands import PolicyCommands
from .pool_commands import PoolCommands
from .queries import Queries
from .restarts import Restarts
from .role_commands import RoleCommands
from .running import Running
from .session_commands import SessionCommands
from .settings import USUAL, Settings
from .snapshot_commands import SnapshotCommands
from .storage_domain_commands import StorageDomainCommands
from .tag_commands import TagCommands
from .template_commands import TemplateCommands
from .timeline import Action
from .transfer_commands import TransferCommands
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
        self.instance_types = InstanceTypeCommands(backend)
        self.pools = PoolCommands(backend, self.vms)
        self.snapshots = SnapshotCommands(backend)
        self.consoles = ConsoleCommands(backend)
        self.devices = DeviceCommands(backend)
        self.disks = DiskCommands(backend)
        self.disk_moves = DiskMoves(backend)
        self.storage_domains = StorageDomainCommands(backend)
        self.templates = TemplateCommands(backend)
        self.transfers = TransferCommands(backend)
        self.upgrades = UpgradeCommands(backend)
        self.jobs = JobCommands(backend)
        self.networks = NetworkCommands(backend)
        self.mac_pools = MacPoolCommands(backend)
        self.data_centers = DataCenterCommands(backend)
        self.access = AccessCommands(backend)
        self.roles = RoleCommands(backend)
        self.directory = DirectoryCommands(backend)
        self.tags = TagCommands(backend)
        maintenance = Maintenance(backend, Draining(backend, migrations, scheduler), outages)
        self.hosts = HostCommands(backend, maintenance, outages)
        self.installation = HostInstallation(backend, maintenance)
        self.host_upgrades = HostUpgrades(backend, self.hosts, maintenance)
        self.fencing = FenceCommands(backend)
        self.affinity_groups = AffinityCommands(backend)
        self.labels = LabelCommands(backend)
        self.policies = PolicyCommands(backend)
        self.sessions = SessionCommands(backend)
        self.events = EventCommands(backend)
        resuming.resume(backend, running, migrations, maintenance)
        self.installation.resume()
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
            (settings.pool_monitor_seconds, self.pools.prestart),
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
