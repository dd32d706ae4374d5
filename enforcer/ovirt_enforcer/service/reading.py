"""One reading of the engine, with all that is known besides: store, orders, runs."""

import dataclasses
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Final, NamedTuple

from ovirt_enforcer.actions.executor import Executor
from ovirt_enforcer.actions.plan_progress import Projection, UnderWay, projected
from ovirt_enforcer.actions.recent_moves import Backoff, Moves
from ovirt_enforcer.gates.admission import Memory
from ovirt_enforcer.gates.gate import HOUR_SECONDS, Held
from ovirt_enforcer.maintenance.decision import WayHome
from ovirt_enforcer.maintenance.runs import MaintenanceRuns, Observation, UpgradeFlags
from ovirt_enforcer.notifications import Notifications
from ovirt_enforcer.planners import PlannerProcesses, PlanQuestion
from ovirt_enforcer.plans import failure_domains, plan_options, planning_seconds, strategy_name
from ovirt_enforcer.service.recording import Recorder
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_enforcer.stores import Stores
from ovirt_placement.answers.plans import kept_text
from ovirt_placement.answers.plans.text import NoPlan, plan_of
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.dialogues import PATIENCE_SECONDS
from ovirt_placement.engine.requests import tagged_ids
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance.site import Leaving, leaving
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.requests import HOMEWARD
from ovirt_placement.store.enforcer.history import PlanRecord
from ovirt_placement.store.enforcer.intents import Cause, Intent, IntentState
from ovirt_placement.store.enforcer.leader import Cycle, OpenBreaker, RememberedRefusal


@dataclass(eq=False)
class Parts:
    """What reconciles clusters, as the configuration asks for it."""

    config: Config
    connection: EngineConnection
    stores: Stores
    recorder: Recorder
    planners: PlannerProcesses
    #: Seconds that only grow.
    clock: Callable[[], float]
    #: Whether the epoch of a decision lasts.
    still_leads: Callable[[int], bool]
    #: Whether another piece of work is to be done.
    goes_on: Callable[[], bool]
    notifications: Notifications
    time_of_day: Callable[[], datetime] = lambda: datetime.now(UTC)
    patience_seconds: float = PATIENCE_SECONDS

    def __post_init__(self) -> None:
        self.settings = settings = self.config.section("enforcer", EnforcerSettings)
        self.executor = Executor(
            self.connection,
            self.stores.intents,
            settings,
            self.clock,
            self.still_leads,
            self.recorder.began,
            self.recorder.ended,
            self.patience_seconds,
        )
        tagged = partial(tagged_ids, self.connection, settings.exclude_tag)
        self.memory = Memory(settings, self.stores, tagged, self.time_of_day)
        self.moves = Moves(self.connection, settings.circle_seconds, self.clock)
        flags = UpgradeFlags(self.connection)
        self.maintenance = MaintenanceRuns(
            self.stores, self.executor, settings, flags, self.clock, self.notifications
        )


class AppliedPlan(NamedTuple):
    """A plan that is carried out on a person's word, as far as that has come."""

    under_way: UnderWay
    set_by: str
    #: When, in seconds since the epoch: the same plan may be applied again.
    set_at: float


def applied_plan(parts: Parts, cluster: str) -> AppliedPlan | None:
    """What `ovirt-enforcer apply` has ordered for a cluster and is still to be done; None without any.

    Raises `StoreAway`.
    """
    for approval in parts.stores.approvals.approvals():
        lasts = approval.age_seconds < parts.settings.approval_hours * HOUR_SECONDS
        if approval.cluster == cluster and lasts:
            for record in parts.stores.history.plans_named(approval.plan):
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
    running: dict[int, set[str]] = {}
    for one in since:
        if one.step and one.state is not IntentState.DONE:
            running.setdefault(one.step - 1, set()).add(one.vm)
    done = {one.step - 1 for one in since if one.step and one.step - 1 not in running}
    if done.issuperset(range(len(plan.steps))):
        return None
    return AppliedPlan(UnderWay(plan, done, ordered=True, running=running), set_by, set_at)


#: Of recorded refusals this many are written down.
_MOST_REFUSALS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Reading(Observation):
    """One reading of the engine, with all that is known besides."""

    parts: Parts
    #: Migrations that have ended, the oldest first.
    history: Sequence[Intent]
    #: When it began, by the daemon's clock.
    began: float
    _ways: dict[str, WayHome | None] = field(default_factory=dict, init=False)

    @property
    def _settings(self) -> EnforcerSettings:
        return self.parts.settings

    @cached_property
    def projection(self) -> Projection:
        """The cluster as it will be once what is under way has ended."""
        return projected(self.snapshot, self.open_intents)

    @cached_property
    def backoff(self) -> Backoff:
        """What the history holds back."""
        return Backoff(self._settings, self.snapshot, self.history, self.parts.moves)

    def frozen(self, plan: Plan) -> dict[str, str]:
        """VMs that the plan under way is to leave alone, with the reason."""
        return {**self.backoff.frozen_in(plan.cluster), **self.gates.frozen(self.snapshot, plan)}

    def seconds_left(self, cluster: str) -> float:
        """How long until time alone lets something be done in a cluster that waits now; infinite if not."""
        return min(self.gates.seconds_left(self.snapshot, cluster), self.backoff.seconds_left(cluster))

    def way_home(self, cluster: str) -> WayHome | None:
        """The VMs that a maintenance run brings back to a cluster. Raises `StoreAway`."""
        if cluster not in self._ways:
            self._ways[cluster] = self.parts.maintenance.way_home(cluster, self.snapshot)
        return self._ways[cluster]

    def moves_in(self, cluster: str) -> bool:
        """Whether anything of a cluster is on its way, or not known to have arrived."""
        if any(intent.cluster == cluster for intent in self.open_intents):
            return True
        return any(self.snapshot.vm_by_id[vm].cluster == cluster for vm in self.projection.moving)

    def cycle(self, waiting: Collection[str]) -> Cycle:
        """What the cycle of this reading is remembered by.

        Of VMs that are left alone those in `waiting` are named: the others are to go nowhere.
        """
        left_out = [RememberedRefusal(vm, None, one.reason) for vm, one in self.backoff.refused_vms.items()]
        left_out += [RememberedRefusal(vm, host, why) for (vm, host), why in self.backoff.left_out.items()]
        breakers = self.gates.open_breakers(self.snapshot)
        return Cycle(
            epoch=self.epoch,
            error=None,
            breakers=tuple(OpenBreaker(*one) for one in breakers.items()),
            refusals=tuple([one for one in left_out if one.vm in waiting][:_MOST_REFUSALS]),
        )

    def question(
        self, cluster: str, plan: Plan | None, *, simulate: bool, seed: int | None = None
    ) -> PlanQuestion:
        """What a planner is to be asked for a cluster; with a seed, what was drawn before is drawn again."""
        spared = {**self.backoff.spared(cluster), **self.gates.held_groups(self.snapshot)}
        domains = failure_domains(self.parts.config.ha, self.snapshot)
        options = plan_options(self._settings, spared, self.gates.frozen_hosts(self.snapshot), domains)
        known = self.snapshot.hosts_of_cluster.get(cluster, ())
        way = self.way_home(cluster)
        lasting = {**self.projection.moving, **({} if way is None else way.given_up)}
        held = {**self.gates.held(self.snapshot, plan), **{vm: Held(why) for vm, why in lasting.items()}}
        here = [host.id for host in known if host.id in self.parts.maintenance.emptied]
        return PlanQuestion(
            cluster=cluster,
            holding=self.backoff.holding(held, spared, cluster),
            options=dataclasses.replace(options, constraints=tuple(leaving(self.projection.snapshot, here))),
            strategy=strategy_name(self._settings),
            deadline=planning_seconds(self._settings),
            simulate=simulate,
            seed=seed,
            restless=bool(self.backoff.restless_in(cluster)),
            home=None if way is None else way.moved,
        )


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


class LastPlan:
    """Of one cluster; nothing is known before the first plan."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        #: VMs of what it leaves unrepaired.
        self.waiting: frozenset[str] = frozenset()
        #: VMs that it could not take off a host that is to be empty, with the reasons.
        self.staying: dict[str, str] = {}
        #: By the run that brings VMs back, once nothing is left to be done, those that stay.
        self.at_home: dict[str, dict[str, str]] = {}
        #: The run that a plan is being made for, if any, and VMs that cannot go back for now.
        self._asked: tuple[str, frozenset[str]] | None = None

    def note_question(self, reading: Reading, question: PlanQuestion) -> None:
        """Take note of what is asked of a planner."""
        way = reading.way_home(self._cluster)
        self._asked = None
        if way is not None:
            held = {one.vm for one in way.moved if one.vm in question.holding.frozen}
            self._asked = way.run, frozenset(held.difference(way.given_up))

    def note_plan(self, reading: Reading, plan: Plan, asked: Snapshot) -> None:
        """Take note of a plan that was made of what was asked."""
        lost = plan.reservation.lost if plan.reservation is not None else ()
        unrepaired = (*(one.vms for one in plan.remaining), *(one.vms for one in lost))
        self.waiting = frozenset(vm for vms in unrepaired for vm in vms)
        self.staying = staying_text(plan, asked)
        self.at_home = {}
        if self._asked is None or plan.steps or reading.moves_in(self._cluster):
            return
        run, held = self._asked
        if held and math.isfinite(reading.seconds_left(self._cluster)):
            return  # time alone lets them go
        self.at_home = {run: staying_text(plan, asked, HOMEWARD)}
