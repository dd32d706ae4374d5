"""Plans that a person had applied: they come before those that the enforcer makes itself."""

from __future__ import annotations

from dataclasses import dataclass

from ovirt_enforcer.gates.gate import HOUR_SECONDS
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.plans.reading import NoPlan, plan_of
from ovirt_placement.planning.plan import Plan
from ovirt_placement.store.approvals import ApprovalStore
from ovirt_placement.store.causes import Cause
from ovirt_placement.store.history import HistoryStore, PlanRecord
from ovirt_placement.store.intents import IntentState


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    """A plan to be carried out on a person's word."""

    plan: Plan
    set_by: str
    #: When, in seconds since the epoch: the same plan may be applied again.
    set_at: float
    #: Places of the steps, from 0, that were taken already.
    done: frozenset[int]


class Orders:
    """Reads what was ordered from the store: `ovirt-enforcer apply` has written it there."""

    def __init__(self, settings: EnforcerSettings, approvals: ApprovalStore, history: HistoryStore) -> None:
        self._settings = settings
        self._approvals = approvals
        self._history = history

    def of(self, cluster: str) -> AppliedPlan | None:
        """What is still to be done in a cluster on somebody's word; None without any. Raises `StoreAway`."""
        for approval in self._approvals.approvals():
            if (
                approval.cluster == cluster
                and approval.age_seconds < self._settings.approval_hours * HOUR_SECONDS
            ):
                for record in self._history.plans_named(approval.plan):
                    if record.id == approval.plan and record.epoch is None:
                        return _order(record, approval.set_by, approval.set_at)
        return None


def _order(record: PlanRecord, set_by: str, set_at: float) -> AppliedPlan | None:
    try:
        plan = plan_of(record.document)
    except NoPlan:
        return None  # of another release
    since = [one for one in record.migrations if one.created >= set_at and one.cause is not Cause.NEVER_ASKED]
    if any(one.state is IntentState.FAILED for one in since):
        return None  # what is left of it leads elsewhere
    done = frozenset(one.step - 1 for one in since if one.step and one.state is IntentState.DONE)
    return None if done.issuperset(range(len(plan.steps))) else AppliedPlan(plan, set_by, set_at, done)
