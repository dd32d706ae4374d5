"""What a change leads to in each cluster: violated rules, migrations that repair them, survived failures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ovirt_placement.forecast.breaking import Barred, Difference, difference, find_barred
from ovirt_placement.forecast.repeated import end_of, repeated_plan
from ovirt_placement.forecast.surviving import Survived, survived
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import NEVER, Deadline
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair

#: Which rules migrations are planned for.
HARD_AND_SOFT = frozenset({Repair.HARD, Repair.SOFT})


@dataclass(frozen=True, slots=True)
class Outlook:
    """One cluster."""

    cluster: str
    rules: Difference
    #: VMs that are down, and that no host would take any more once the plan is carried out.
    barred: Barred
    #: For what the change violates; what was violated before stays as it is.
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
    end = end_of(after, plan)
    return Outlook(
        cluster=cluster,
        rules=rules,
        barred=find_barred(before, end, cluster, deadline),
        plan=plan,
        now=survived(before, cluster),
        changed=changed,
        settled=survived(end, cluster) if plan.steps else changed,
    )


def _plan(
    after: Snapshot, cluster: str, rules: Difference, repair: frozenset[Repair], deadline: Deadline
) -> Plan:
    """Only for what the change violates."""
    if not rules.violated:
        return Plan(cluster=cluster, strategy="")
    new = {group for one in rules.violated for group in one.constraint.groups}
    old = {group for one in rules.as_before for group in one.constraint.groups}
    keys = any(one.constraint.family == "placement_keys" for one in rules.violated)
    options = PlanOptions(repair=repair, spared=frozenset(old - new), keys=keys)
    return repeated_plan(after, cluster, options, deadline)
