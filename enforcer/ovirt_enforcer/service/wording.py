"""Words that a cluster's plans are logged with."""

from __future__ import annotations

from collections.abc import Collection

from ovirt_placement.answers.plans.records import step_record
from ovirt_placement.answers.plans.text import step_text
from ovirt_placement.model import Snapshot
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
