"""What the store knows of plans: those that wait, those of lately, and what people have decided on them."""

from __future__ import annotations

from ovirt_enforcer.history import steps
from ovirt_placement.answers.document import listed
from ovirt_placement.config import Config
from ovirt_placement.model import Cluster
from ovirt_placement.store.approvals import ApprovalStore, WaitingPlan
from ovirt_placement.store.history import HistoryStore, PlanRecord
from ovirt_placement.store.intents import IntentState
from ovirt_placement.store.maintenance import MaintenanceRun, MaintenanceStore
from ovirt_placement.store.pauses import Pause, PauseStore
from ovirt_placement.store.user_actions import UserAction, UserActionKind, UserActionStore
from ovirt_placement_web.stored import stored
from ovirt_service.errors import UserError

#: In seconds.
DAY = 86400.0
MONTH = 30 * DAY
_ENDED = (IntentState.DONE, IntentState.FAILED)


class Past:
    """Reads the store; each method raises `UserError` while it is away."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def history(self, seconds: float) -> tuple[PlanRecord, ...]:
        """Plans of this many seconds, the latest first."""
        return stored(HistoryStore, self._config, lambda store: store.plans(since_seconds=seconds))[::-1]

    def waiting(self, cluster: Cluster) -> WaitingPlan | None:
        """The plan of a cluster that waits for a person's word."""
        waiting = stored(ApprovalStore, self._config, ApprovalStore.waiting)
        return next((one for one in waiting if one.cluster == cluster.id), None)

    def under_way(self, cluster: Cluster) -> PlanRecord | None:
        """The latest plan of a cluster that has a migration which has not ended."""
        recorded = (one for one in self.history(DAY) if one.cluster == cluster.id)
        running = (one for one in recorded if any(each.state not in _ENDED for each in one.migrations))
        return next(running, None)

    def pause(self, cluster: Cluster) -> Pause | None:
        """The pause of migrations that is in force in a cluster; None also while the store is away."""
        try:
            pauses = stored(PauseStore, self._config, PauseStore.pauses)
        except UserError:
            return None
        return next((one for one in pauses if one.cluster in ("", cluster.id)), None)

    def run(self, cluster: Cluster) -> MaintenanceRun | None:
        """The maintenance run that is under way in a cluster."""
        runs = stored(MaintenanceStore, self._config, MaintenanceStore.runs)
        return next((one for one in runs if one.cluster == cluster.id and one.active), None)

    def refusal(self, cluster: Cluster) -> UserAction | None:
        """The refusal of the last plan of a cluster that has steps, where that was refused."""
        last = next((one for one in self.history(DAY) if one.cluster == cluster.id and steps(one)), None)
        said = () if last is None else self.words_on(last.id)
        return said[-1] if said and said[-1].kind is UserActionKind.REFUSE else None

    def plan_named(self, plan: str) -> PlanRecord | None:
        """A plan as it was written down; None where it was not."""
        found = stored(HistoryStore, self._config, lambda store: store.plans_named(plan))
        return next((one for one in found if one.id == plan), None)

    def words_on(self, plan: str) -> tuple[UserAction, ...]:
        """What people have said to a plan, the oldest first."""
        actions = stored(UserActionStore, self._config, lambda store: store.actions(since_seconds=MONTH))
        return tuple(one for one in actions if one.plan == plan)

    def changed(self, former: str, present: str | None) -> str:
        """What has become of a plan that somebody looked at, as sentences."""
        if present is None:
            last = next(reversed(self.words_on(former)), None)
            if last is not None:
                return f"the plan does not wait any more: {last.sentence}."
            return "the plan does not wait any more: its cluster needs none now."
        before, after = (_moves(self.plan_named(plan)) for plan in (former, present))
        gone = [move for move in before if move not in after]
        new = [move for move in after if move not in before]
        text = f"the cluster has changed, and plan {present} waits in its place."
        text += f" No longer in it: {listed(gone)}." if gone else ""
        return text + (f" New in it: {listed(new)}." if new else "")


def _moves(plan: PlanRecord | None) -> list[str]:
    """The migrations of a plan, as a person reads them."""
    steps = () if plan is None else plan.document.get("steps", ())
    return [f"{vm['name']} to {step['to']['name']}" for step in steps for vm in step["vms"]]
