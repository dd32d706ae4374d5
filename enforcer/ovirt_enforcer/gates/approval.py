"""Closed in mode approve, until a person approves of the plan: of this one, and of no other.

An approval is used up step by step. What is left of the plan that was approved of must be what is left of
the plan that is to be carried out. Where the cluster changed beneath it, so that another plan was made, that
one waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.history import HOUR_SECONDS, begun_ago
from ovirt_enforcer.gates.modes import why_as_strict
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.planning.plan import Plan, Step, StepPurpose
from ovirt_placement.store.approvals import Approval, ApprovedMove

#: What waits is approved of by this.
COMMAND: Final = "ovirt-enforcer approve"


class ApprovalGate(Gate):
    name = "approval"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        strict = why_as_strict(facts, cluster, step, Mode.APPROVE)
        if strict is None or empties(step, facts):
            return None
        plan = facts.plan or Plan(cluster=cluster, strategy="", steps=(step,))
        wanted = f'{strict}: "{COMMAND} {plan.id}" lets it'
        approval = next((one for one in facts.remembered.approvals if one.cluster == cluster), None)
        if approval is None:
            return wanted
        if approval.age_seconds >= facts.settings.approval_hours * HOUR_SECONDS:
            return f"the approval of plan {approval.plan} by {approval.set_by} has expired; {wanted}"
        left = _left(approval.moves, approval, facts)
        if not left:
            return wanted
        if left != _left(moves(plan), approval, facts) or _move(step) not in left:
            return f"plan {approval.plan} was approved of, and the cluster has changed since; {wanted}"
        return None

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return settings.approval_hours * HOUR_SECONDS


def empties(step: Step, facts: Facts) -> bool:
    """Whether it takes VMs off a host whose maintenance a person has requested: that is their word."""
    draining = facts.snapshot.draining_hosts
    return step.purpose is StepPurpose.MAINTENANCE and all(host in draining for host in step.sources)


def moves(plan: Plan) -> tuple[ApprovedMove, ...]:
    """What a plan does, as it is approved of."""
    return tuple(map(_move, plan.steps))


def _move(step: Step) -> ApprovedMove:
    return ApprovedMove(step.vms, step.sources, step.target)


def _left(planned: Iterable[ApprovedMove], approval: Approval, facts: Facts) -> frozenset[ApprovedMove]:
    """Those moves that were not asked for since the approval."""
    used = {
        (intent.vm, intent.source, intent.target)
        for intent in (*facts.history, *facts.open_intents)
        if begun_ago(intent) < approval.age_seconds
    }
    return frozenset(move for move in planned if not _used(move, used))


def _used(move: ApprovedMove, used: set[tuple[str, str | None, str]]) -> bool:
    return any((vm, source, move.target) in used for vm, source in zip(move.vms, move.sources, strict=True))
