"""The maintenance runs that are under way, and when they are to be looked at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from ovirt_enforcer.maintenance.homes import WayHome
from ovirt_enforcer.maintenance.runs import PlanOutcome, draining, emptied
from ovirt_enforcer.service.look import Look
from ovirt_enforcer.service.parts import Parts
from ovirt_placement.model import Snapshot
from ovirt_placement.store.maintenance_run import MaintenanceRun

#: Two looks are this many times as far apart as one takes.
_LEAST_PAUSE_LOOKS: Final = 5.0


class RunsUnderWay:
    """What the daemon knows of them, which is read from the store again and again; for one thread."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._runs: tuple[MaintenanceRun, ...] = ()
        #: When they are to be looked at, by the daemon's clock; never if there are none.
        self.due = math.inf

    def learn(self) -> None:
        """Read them; look at once if one was begun, paused, resumed or stopped. Raises `StoreAway`."""
        before, self._runs = self._runs, self._parts.maintenance.active()
        if {(run.id, run.state) for run in before} != {(run.id, run.state) for run in self._runs}:
            self.due = self._parts.clock()

    def forget(self) -> None:
        """Know of none: another process leads."""
        self._runs, self.due = (), math.inf
        self._parts.maintenance.leave()

    def marked(self, read: Callable[[], Snapshot]) -> Snapshot:
        """What is read of the engine now, with the hosts that are marked as of before. Raises `StoreAway`."""
        self.learn()
        return replace(read(), draining_hosts=draining(self._runs))

    @property
    def emptied(self) -> tuple[str, ...]:
        """The hosts whose VMs are to be migrated away now."""
        return emptied(self._runs)

    def ways_home(self, snapshot: Snapshot) -> Mapping[str, WayHome]:
        """The VMs that are to go back to their hosts now, by the cluster. Raises `StoreAway`."""
        return self._parts.maintenance.ways_home(self._runs, snapshot)

    def take(self, look: Look) -> Iterator[MaintenanceRun]:
        """Those that are due, as they were before the engine was read."""
        self._parts.maintenance.hide_ended(self._runs, look.snapshot)
        if self.due > self._parts.clock():
            return
        self.due = self._parts.clock() + self._parts.settings.interval_seconds if self._runs else math.inf
        for run in self._runs:
            if run.cluster in look.snapshot.cluster_by_id and self._parts.goes_on():
                yield run

    def advance(self, run: MaintenanceRun, look: Look, outcome: PlanOutcome, look_seconds: float) -> None:
        """Do what is next in one, and look again soon where more may follow."""
        if self._parts.maintenance.reconcile(run, look, outcome):
            pause = max(self._parts.settings.poll_seconds, _LEAST_PAUSE_LOOKS * look_seconds)
            self.due = min(self.due, self._parts.clock() + pause)
