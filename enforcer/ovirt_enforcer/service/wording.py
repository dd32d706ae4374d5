"""Words that a cluster's plans are logged with."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from ovirt_placement.answers.plans.obstacles import kept_text
from ovirt_placement.answers.plans.records import step_record
from ovirt_placement.answers.plans.text import step_text
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance.leaving import Leaving
from ovirt_placement.planning.maintenance.returning import HOMEWARD
from ovirt_placement.planning.plan import Plan


def gist(plan: Plan, unsettled: Collection[str]) -> str:
    """What a plan comes to, without what changes each time that somebody else moves a VM to and fro."""
    remaining = {group for rule in plan.remaining for group in rule.groups} - {*unsettled}
    return f"{plan.id if plan.steps else ''} {sorted(remaining)}"


def left_out_text(snapshot: Snapshot, plan: Plan, left_out: Collection[int]) -> str:
    """Which steps, by their places in the plan, are not taken."""
    first = step_text(step_record(plan.steps[min(left_out)], snapshot))
    more = f" and {len(left_out) - 1} more" if len(left_out) > 1 else ""
    return f"left out, since the cluster has changed: {first}{more}"


def rules_of(plan: Plan) -> Plan:
    """A plan without what a maintenance run asks for besides the rules."""
    remaining = tuple(one for one in plan.remaining if one.family not in (Leaving.family, HOMEWARD))
    return replace(plan, remaining=remaining)


def staying_text(plan: Plan, snapshot: Snapshot, family: str = Leaving.family) -> dict[str, str]:
    """The VMs that a plan cannot take off hosts that are to be empty, each with what stands in the way.

    With the family `HOMEWARD`, those that it cannot bring back.
    """
    return {
        vm: "; ".join(dict.fromkeys(kept_text(obstacle, snapshot) for obstacle in one.obstacles))
        for one in plan.remaining
        if one.family == family
        for vm in one.vms
    }
