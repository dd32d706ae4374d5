"""A plan for as much as can be repaired: made again from its end where a first one leaves something."""

from __future__ import annotations

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from ovirt_placement.planning.verification import apply

#: The share of the time for the first plan, and how many others may follow it.
_FIRST_SHARE = 0.7
_MOST_PLANS = 5


def repeated_plan(state: Snapshot, cluster: str, options: PlanOptions, deadline: Deadline) -> Plan:
    """Plan as the enforcer does, which plans again in each cycle until nothing more can be repaired."""
    whole = latest = make_plan(state, cluster, options=options, deadline=deadline.within(_FIRST_SHARE))
    for _ in range(_MOST_PLANS):
        if latest.proven or not latest.steps or deadline.over:
            break
        latest = make_plan(end_of(state, whole), cluster, options=options, deadline=deadline)
        whole = _joined(whole, latest)
    return whole


def end_of(state: Snapshot, plan: Plan) -> Snapshot:
    """The state once a plan is carried out."""
    for step in plan.steps:
        state = apply(state, step)
    return state


def _joined(first: Plan, then: Plan) -> Plan:
    count = len(first.steps)
    later = (
        replace(step, after=tuple(count + place for place in step.after) or tuple(range(count)))
        for step in then.steps
    )
    return replace(
        first,
        steps=(*first.steps, *later),
        remaining=then.remaining,
        seconds=first.seconds + then.seconds,
        proven=False,
    )
