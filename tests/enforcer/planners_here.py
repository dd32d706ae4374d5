"""Plans that are made at once, in the daemon's own thread, for tests on a simulated clock."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ovirt_enforcer.planners import Planning, PlanQuestion, plan_of
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan

#: In seconds; the clock of such a test stands still meanwhile, however slow the machine is.
_LONG = 600.0


class PlannersHere:
    """Stands for `PlannerProcesses`."""

    def start(self, snapshot: Snapshot, question: PlanQuestion) -> Planning:
        return _Made(plan_of(snapshot, replace(question, deadline=_LONG), simulation_seconds=_LONG))


@dataclass(frozen=True, slots=True)
class _Made:
    plan: Plan

    def result(self) -> Plan:
        return self.plan

    def cancel(self) -> None:
        """There is nothing to end."""
