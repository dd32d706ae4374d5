"""Plans that are made at once, in the daemon's own thread, for tests on a simulated clock."""

from dataclasses import replace

from ovirt_enforcer.planners import Call, PlannerProcesses, PlanQuestion, plan_of
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan

#: In seconds; the clock of such a test stands still meanwhile, however slow the machine is.
_LONG = 600.0


class PlannersHere(PlannerProcesses):
    """Plans are there as soon as they are asked for."""

    def start(self, snapshot: Snapshot, question: PlanQuestion) -> Call[Plan]:
        return _Made(plan_of(snapshot, replace(question, deadline=_LONG), simulation_seconds=_LONG))


class _Made(Call[Plan]):
    def __init__(self, plan: Plan) -> None:
        super().__init__(lambda: plan, (), _LONG)
        self._plan = plan

    def over(self) -> bool:
        return True

    def result(self) -> Plan:
        return self._plan
