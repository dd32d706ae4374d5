"""What a change leads to in each cluster: broken rules, migrations that repair them, survived failures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from ovirt_placement.forecast.breaking import Difference, difference
from ovirt_placement.forecast.surviving import Survived, survived
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import NEVER, Deadline
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.planning.verification import apply

#: The share of the time for a first plan; and so often another one is made where it leaves something broken.
_FIRST_SHARE = 0.7
_MOST_PLANS = 5
#: Which rules migrations are planned for.
HARD_AND_SOFT = frozenset({Repair.HARD, Repair.SOFT})


@dataclass(frozen=True, slots=True)
class Outlook:
    """One cluster."""

    cluster: str
    rules: Difference
    #: For what the change breaks; what was broken before stays as it is.
    plan: Plan
    #: How many hosts may fail: now, with the change as VMs run today, and once the plan is carried out. None
    #: without highly available VMs.
    now: Survived | None
    changed: Survived | None
    settled: Survived | None


def foresee(
    before: Snapshot,
    after: Snapshot,
    clusters: Iterable[str],
    *,
    repair: frozenset[Repair] = HARD_AND_SOFT,
    deadline: Deadline = NEVER,
) -> tuple[Outlook, ...]:
    """Compare the state as it is with what it would be."""
    return tuple(_outlook(before, after, cluster, repair, deadline) for cluster in clusters)


def _outlook(
    before: Snapshot, after: Snapshot, cluster: str, repair: frozenset[Repair], deadline: Deadline
) -> Outlook:
    rules = difference(before, after, cluster)
    plan = _plan(after, cluster, rules, repair, deadline)
    changed = survived(after, cluster)
    return Outlook(
        cluster=cluster,
        rules=rules,
        plan=plan,
        now=survived(before, cluster),
        changed=changed,
        settled=survived(_end(after, plan), cluster) if plan.steps else changed,
    )


def _plan(
    after: Snapshot, cluster: str, rules: Difference, repair: frozenset[Repair], deadline: Deadline
) -> Plan:
    """Only for what the change breaks."""
    if not rules.broken:
        return Plan(cluster=cluster, strategy="")
    new = {group for one in rules.broken for group in one.constraint.groups}
    old = {group for one in rules.as_before for group in one.constraint.groups}
    keys = any(one.constraint.family == "placement_keys" for one in rules.broken)
    options = PlanOptions(repair=repair, spared=frozenset(old - new), keys=keys)
    whole = latest = make_plan(after, cluster, options=options, deadline=deadline.within(_FIRST_SHARE))
    for _ in range(_MOST_PLANS):
        if latest.proven or not latest.steps or deadline.over:
            break
        latest = make_plan(_end(after, whole), cluster, options=options, deadline=deadline)
        whole = _joined(whole, latest)
    return whole


def _joined(first: Plan, then: Plan) -> Plan:
    """One plan after the other: whoever carries plans out asks again where one left something broken."""
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


def _end(state: Snapshot, plan: Plan) -> Snapshot:
    for step in plan.steps:
        state = apply(state, step)
    return state
