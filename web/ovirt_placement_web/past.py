"""What the store knows of plans: those that wait, those of lately, and what people have decided on them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from ovirt_placement.answers.sentences import listed
from ovirt_placement.config import Config
from ovirt_placement.model import Cluster
from ovirt_placement.store.approvals import ApprovalStore, WaitingPlan
from ovirt_placement.store.database import StoreUnmade
from ovirt_placement.store.history import HistoryStore, PlanRecord
from ovirt_placement.store.user_actions import UserAction, UserActionStore
from ovirt_placement_web.questions import STORE_SECONDS

_MONTH = 30 * 86400.0


class Past:
    """Reads the store; each method raises `UserError` while it is away."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def history(self, seconds: float) -> tuple[PlanRecord, ...]:
        """Plans of this many seconds, the latest first."""
        try:
            with closing(self._store(HistoryStore)) as store:
                found: tuple[PlanRecord, ...] = store.plans(since_seconds=seconds)
                return found[::-1]
        except StoreUnmade:
            return ()

    def waiting(self, cluster: Cluster) -> WaitingPlan | None:
        """The plan of a cluster that waits for a person's word."""
        try:
            with closing(self._store(ApprovalStore)) as store:
                waiting: tuple[WaitingPlan, ...] = store.waiting()
        except StoreUnmade:
            return None
        return next((one for one in waiting if one.cluster == cluster.id), None)

    def plan_named(self, plan: str) -> PlanRecord | None:
        """A plan as it was written down; None where it was not."""
        try:
            with closing(self._store(HistoryStore)) as store:
                found: tuple[PlanRecord, ...] = store.plans_named(plan)
        except StoreUnmade:
            return None
        return next((one for one in found if one.id == plan), None)

    def words_on(self, plan: str) -> tuple[UserAction, ...]:
        """What people have said to a plan, the oldest first."""
        try:
            with closing(self._store(UserActionStore)) as store:
                actions: tuple[UserAction, ...] = store.actions(since_seconds=_MONTH)
        except StoreUnmade:
            return ()
        return tuple(one for one in actions if one.plan == plan)

    def changed(self, former: str, present: str | None) -> str:
        """What has become of a plan that somebody looked at, as sentences."""
        if present is None:
            return "the plan does not wait any more: it was approved of, or its cluster needs none now."
        before, after = (_moves(self.plan_named(plan)) for plan in (former, present))
        gone = [move for move in before if move not in after]
        new = [move for move in after if move not in before]
        text = f"the cluster has changed, and plan {present} waits in its place."
        text += f" No longer in it: {listed(gone)}." if gone else ""
        return text + (f" New in it: {listed(new)}." if new else "")

    def _store(self, part: Callable[..., Any]) -> Any:
        where, engine = self._config.store.url, self._config.engine.name
        return part(where, engine=engine, patience_seconds=STORE_SECONDS, create=False)


def _moves(plan: PlanRecord | None) -> list[str]:
    """The migrations of a plan, as a person reads them."""
    steps = () if plan is None else plan.document.get("steps", ())
    return [f"{vm['name']} to {step['to']['name']}" for step in steps for vm in step["vms"]]
