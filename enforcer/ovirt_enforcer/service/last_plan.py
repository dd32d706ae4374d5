"""What came of the last plan of a cluster, as far as a maintenance run waits for it."""

from __future__ import annotations

import math

from ovirt_enforcer.service.look import Look
from ovirt_enforcer.service.planners import PlanQuestion
from ovirt_enforcer.service.wording import staying_text
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance.returning import HOMEWARD
from ovirt_placement.planning.plan import Plan


class LastPlan:
    """Of one cluster; nothing is known before the first plan."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        #: VMs that it could not take off a host that is to be empty, with the reasons.
        self.staying: dict[str, str] = {}
        #: By the run that brings VMs back, once nothing is left to be done, those that stay.
        self.at_home: dict[str, dict[str, str]] = {}
        #: The run that a plan is being made for, if any, and VMs that cannot go back for now.
        self._asked: tuple[str, frozenset[str]] | None = None

    def ask(self, look: Look, question: PlanQuestion) -> None:
        """Take note of what is asked of a planner."""
        way = look.ways_home.get(self._cluster)
        self._asked = None
        if way is not None:
            held = {one.vm for one in way.moved if one.vm in question.frozen}
            self._asked = way.run, frozenset(held.difference(way.given_up))

    def take(self, look: Look, plan: Plan, asked: Snapshot) -> None:
        """Take note of a plan that was made of what was asked."""
        self.staying = staying_text(plan, asked)
        self.at_home = {}
        if self._asked is None or plan.steps or look.moves_in(self._cluster):
            return
        run, held = self._asked
        if held and math.isfinite(look.seconds_left(self._cluster)):
            return  # time alone lets them go
        self.at_home = {run: staying_text(plan, asked, HOMEWARD)}
