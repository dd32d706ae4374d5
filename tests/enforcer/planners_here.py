"""Plans that are made at once, in the daemon's own thread, for tests on a simulated clock."""

from __future__ import annotations

from dataclasses import replace

from ovirt_enforcer.planners import PlannerProcesses, Planning, PlanQuestion, plan_of
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan

#: In seconds; the clock of such a test stands still meanwhile, however slow the machine is.
_LONG = 600.0


class PlannersHere(PlannerProcesses):
    """Plans are there as soon as they are asked for."""

    def start(self, snapshot: Snapshot, question: PlanQuestion) -> Planning:
        return _Made(plan_of(snapshot, replace(question, deadline=_LONG), simulation_seconds=_LONG), question)


class _Made(Planning):
    def __init__(self, plan: Plan, question: PlanQuestion) -> None:
        super().__init__(b"", question)
        self._plan = plan

    def result(self) -> Plan:
        return self._plan
