"""What the store knows of plans: those that wait, those of lately, and what people have decided on them."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final, TypeVar

from ovirt_enforcer.history import steps
from ovirt_placement.answers.document import listed
from ovirt_placement.config import Config
from ovirt_placement.model import Cluster
from ovirt_placement.store.approvals import ApprovalStore, WaitingPlan
from ovirt_placement.store.enforcer.history import HistoryStore, PlanRecord, RecordedMigration
from ovirt_placement.store.enforcer.intents import IntentState
from ovirt_placement.store.enforcer.maintenance import MaintenanceRun, MaintenanceStore
from ovirt_placement.store.pauses import Pause, PauseStore
from ovirt_placement.store.sql import opening
from ovirt_placement.store.sql.access import StoreAccess
from ovirt_placement.store.user_actions import UserAction, UserActionKind, UserActionStore
from ovirt_service.errors import UserError

#: In seconds.
DAY: Final = 86400.0
MONTH: Final = 30 * DAY
#: How long the store may take to answer: a person has the rest of a view within a second.
STORE_SECONDS: Final = 0.5
#: So long it is not asked again that has just not answered: a view reads several parts of it.
_REST_SECONDS: Final = 1.0

_Part = TypeVar("_Part", bound=StoreAccess)
_Item = TypeVar("_Item")


class Past:
    """Reads the store; each method raises `UserError` while it is away."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._rests_until = 0.0
        self._failed: UserError | None = None

    def read(self, part: type[_Part], ask: Callable[[_Part], tuple[_Item, ...]]) -> tuple[_Item, ...]:
        """All that a part of the store answers; nothing where there is no store yet."""
        if self.rests and self._failed is not None:
            raise self._failed.with_traceback(None)
        try:
            return opening.stored(part, self._config, ask, (), patience_seconds=STORE_SECONDS)
        except UserError as error:
            self.rest(error)
            raise

    @property
    def rests(self) -> bool:
        """Whether the store has just failed, and is not to be asked again yet."""
        return monotonic() < self._rests_until

    def rest(self, failed: UserError) -> None:
        """Do not ask the store again for a moment, since it failed with this."""
        self._rests_until, self._failed = monotonic() + _REST_SECONDS, failed

    def history(self, seconds: float) -> tuple[PlanRecord, ...]:
        """Plans of this many seconds, the latest first."""
        return self.read(HistoryStore, lambda store: store.plans(since_seconds=seconds))[::-1]

    def waiting(self, cluster: Cluster) -> WaitingPlan | None:
        """The plan of a cluster that waits for a person's word."""
        waiting = self.read(ApprovalStore, ApprovalStore.waiting)
        return next((one for one in waiting if one.cluster == cluster.id), None)

    def under_way(self, cluster: Cluster) -> PlanRecord | None:
        """The latest plan of a cluster that has a migration which has not ended."""
        return next((one for one in self.history(DAY) if one.cluster == cluster.id and runs(one)), None)

    def pause(self, cluster: Cluster) -> Pause | None:
        """The pause of migrations that is in force in a cluster; None also while the store is away."""
        try:
            pauses = self.read(PauseStore, PauseStore.pauses)
        except UserError:
            return None
        return next((one for one in pauses if one.cluster in ("", cluster.id)), None)

    def maintenance(self, cluster: Cluster) -> list[MaintenanceRun]:
        """The maintenance runs of a cluster."""
        every = self.read(MaintenanceStore, MaintenanceStore.runs)
        return [one for one in every if one.cluster == cluster.id]

    def refusal(self, cluster: Cluster) -> UserAction | None:
        """The refusal of the last plan of a cluster that has steps, where that was refused."""
        last = next((one for one in self.history(DAY) if one.cluster == cluster.id and steps(one)), None)
        said = () if last is None else self.words_on(last.id)
        return said[-1] if said and said[-1].kind is UserActionKind.REFUSE else None

    def plan_named(self, plan: str) -> PlanRecord | None:
        """A plan as it was written down; None where it was not."""
        found = self.read(HistoryStore, lambda store: store.plans_named(plan))
        return next((one for one in found if one.id == plan), None)

    def words_on(self, plan: str) -> tuple[UserAction, ...]:
        """What people have said to a plan, the oldest first."""
        actions = self.read(UserActionStore, lambda store: store.actions(since_seconds=MONTH))
        return tuple(one for one in actions if one.plan == plan)

    def changed(self, former: str, present: str | None) -> str:
        """What has become of a plan that somebody looked at, as sentences."""
        if present is None:
            last = next(reversed(self.words_on(former)), None)
            why = last.sentence if last else "its cluster needs none now"
            return f"the plan does not wait any more: {why}."
        before, after = (_moves(self.plan_named(plan)) for plan in (former, present))
        gone = [move for move in before if move not in after]
        new = [move for move in after if move not in before]
        text = f"the cluster has changed, and plan {present} waits in its place."
        text += f" No longer in it: {listed(gone)}." if gone else ""
        return text + (f" New in it: {listed(new)}." if new else "")


def runs(plan: PlanRecord) -> bool:
    """Whether a plan has a migration that has not ended."""
    return any(map(is_open, plan.migrations))


def is_open(migration: RecordedMigration) -> bool:
    """Whether it has not ended, as far as is known."""
    return migration.state not in (IntentState.DONE, IntentState.FAILED)


def _moves(plan: PlanRecord | None) -> list[str]:
    """The migrations of a plan, as a person reads them."""
    return [
        f"{vm['name']} to {step['to']['name']}"
        for step in (steps(plan) if plan else ())
        for vm in step["vms"]
    ]
