"""Reads what the store remembers for the gates, and writes down what they are to remember."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from datetime import UTC, datetime

from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.gates.gate import HOUR_SECONDS, Remembered
from ovirt_enforcer.gates.people import moves, rule_key
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.plans.plan import plan_record
from ovirt_placement.answers.plans.text import text
from ovirt_placement.config import Config
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan
from ovirt_placement.rules.violations import find_violations
from ovirt_placement.store.approvals import ApprovalStore
from ovirt_placement.store.intents import Store
from ovirt_placement.store.maintenance import MaintenanceStore
from ovirt_placement.store.maintenance_run import upgrade_id
from ovirt_placement.store.pauses import PauseStore
from ovirt_placement.store.violated_rules import ViolatedRuleStore


def _nothing_tagged() -> frozenset[str]:
    return frozenset()


def _now() -> datetime:
    return datetime.now(UTC)


class Memory:
    """What survives a restart of all that gates judge by; for one thread.

    Every method raises `StoreAway` if the store is away, and what `tagged` raises.
    """

    def __init__(
        self,
        config: Config,
        *,
        patience_seconds: float,
        create: bool = True,
        tagged: Callable[[], frozenset[str]] = _nothing_tagged,
        clock: Callable[[], datetime] = _now,
        epoch: Callable[[], int] | None = None,
    ) -> None:
        """`tagged` gives the ids of what bears the tag `exclude_tag`; `clock` the time of day.

        `epoch` gives the epoch of the lease: what is written once it is over raises `LeaseLost`.

        With `create` false nothing is written: a store that does not exist is `StoreAway`.
        """
        self._settings = config.section("enforcer", EnforcerSettings)
        self._tagged = tagged
        #: What bore the tag when the engine was asked last; None before.
        self.tagged: frozenset[str] | None = None
        self._clock = clock
        url, engine = config.store.url, config.engine.name
        self._intents = Store(url, engine=engine, patience_seconds=patience_seconds, create=create)
        self._pauses = PauseStore(url, engine=engine, patience_seconds=patience_seconds, create=create)
        self._approvals = ApprovalStore(
            url, engine=engine, patience_seconds=patience_seconds, create=create, epoch=epoch
        )
        self._runs = MaintenanceStore(url, engine=engine, patience_seconds=patience_seconds, create=create)
        self._violated = ViolatedRuleStore(
            url, engine=engine, patience_seconds=patience_seconds, create=create, epoch=epoch
        )

    def gates(self) -> Gates:
        """The gates as of now, to be read again before each round of admissions.

        Open migrations are read before those that have ended, so that one that ends meanwhile is not missed.
        """
        under_way = self._intents.open_intents()
        history = self._intents.history(within_seconds=Gates.reach_seconds(self._settings))
        ended = {intent.id for intent in history}
        self.tagged = self._tagged() if self._settings.exclude_tag else frozenset[str]()
        remembered = Remembered(
            history=history,
            approvals=self._approvals.approvals(),
            resumed=self._pauses.resumed(),
            tagged=self.tagged,
            own_upgrades=frozenset(map(upgrade_id, self._runs.active_ids())),
        )
        still_open = tuple(intent for intent in under_way if intent.id not in ended)
        return Gates(self._settings, remembered, still_open, self._clock(), self._renewed)

    def words(self) -> Hashable:
        """What people have said of migrations: another value once somebody approved, paused or resumed."""
        approved = tuple((one.cluster, one.plan, one.set_at) for one in self._approvals.approvals())
        return approved, self._pauses.pauses(), self._pauses.resumptions()

    def _renewed(self, remembered: Remembered) -> Remembered:
        """With what may be said or seen while steps are admitted."""
        cycles = self._violated.cycles() if self._settings.hold_cycles > 1 else {}
        return replace(remembered, pauses=self._pauses.pauses(), violated_cycles=cycles)

    def look(self, snapshot: Snapshot, cluster: str) -> None:
        """Count a cycle of a cluster for the rules that are violated there; done before it is planned for."""
        violated = {rule_key(violation) for violation in find_violations(snapshot, cluster)}
        self._violated.look(
            cluster,
            violated,
            cycle_seconds=self._settings.interval_seconds,
            enough=self._settings.hold_cycles,
        )

    def offer(self, gates: Gates, snapshot: Snapshot, plan: Plan) -> bool:
        """Let a plan wait for a person's word if it needs one, else none of its cluster; whether it is new.

        Done with each plan that is made, one without any step as well.
        """
        if not gates.waits_for_approval(snapshot, plan):
            self._approvals.withdraw(plan.cluster)
            return False
        reads = text(plan_record(plan, snapshot))
        lasts = self._settings.approval_hours * HOUR_SECONDS
        return self._approvals.offer(plan.cluster, plan.id, moves(plan), reads, refusal_seconds=lasts)

    def close(self) -> None:
        for part in (self._intents, self._pauses, self._approvals, self._runs, self._violated):
            part.close()
