"""The life of a plan, from what the store says: how far it is, what came of each step, what holds it back."""

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from ovirt_enforcer import plans
from ovirt_enforcer.history import Wanted, steps_about
from ovirt_enforcer.memory import read_engine_state, way_back
from ovirt_enforcer.orders import in_order_of_plan
from ovirt_enforcer.planners import in_process, planned_in_process, preload
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.maintenance import ClusterMaintenance
from ovirt_placement.answers.plans.text import Document
from ovirt_placement.answers.plans.what_if import WhatIfDocument, preview
from ovirt_placement.answers.status import EnforcementRecord
from ovirt_placement.config import Config
from ovirt_placement.forecast import Change
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.store.enforcer.history import PlanRecord
from ovirt_placement.store.enforcer.intents import OPEN_STATES, IntentState
from ovirt_placement.store.orders import WaitingPlan
from ovirt_placement.store.user_actions import UserAction
from ovirt_placement_web.bounds import Latest
from ovirt_placement_web.settings import ENGINE_SECONDS
from ovirt_placement_web.state.sources import runs

#: These gates hold the plan as a whole, not a step of it.
_OF_PLAN = ("approval", "mode", "pause", "breaker")


class CameOf(NamedTuple):
    #: waiting, held, migrating, failed or done.
    state: str
    #: When, in seconds since the epoch.
    at: float
    why: str = ""
    #: How much of it is done, in percent, by what was expected; the engine does not say.
    percent: int | None = None
    took: float = 0.0
    unused: bool = False

    @property
    def begun(self) -> bool:
        return self.state not in ("waiting", "held")


@dataclass(frozen=True)
class Life:
    """How far a plan is; `templates/plan_life.html` says it."""

    record: PlanRecord
    #: The plan that waits in its cluster.
    waiting: WaitingPlan | None = None
    #: What people said to it, the oldest first.
    words: Sequence[UserAction] = ()
    enforcer: EnforcementRecord | None = None
    #: Who has paused migrations in its cluster.
    paused: str = ""
    #: Whether it is the last one that was made there.
    latest: bool = False
    #: Of many steps, those that concern this are shown.
    wanted: Wanted = Wanted()  # noqa: RUF009 - a tuple

    @property
    def waits(self) -> bool:
        return self.waiting is not None and self.waiting.plan == self.record.id

    @property
    def runs(self) -> bool:
        return runs(self.record)

    def said(self, *kinds: str) -> UserAction | None:
        """The last that a person said to it of these kinds."""
        return next((one for one in reversed(self.words) if one.kind in kinds), None)

    @cached_property
    def came(self) -> tuple[CameOf, ...]:
        return tuple(_came(self.record, number, step) for number, step in enumerate(self.record.steps, 1))

    def count(self, state: str) -> int:
        return sum(one.state == state for one in self.came)

    @cached_property
    def state(self) -> str:
        """In a word of `ui.life`."""
        agreed, refused = self.said("approve", "apply", "undo"), self.said("refuse")
        if refused is not None and agreed is not None and refused.created <= agreed.created:
            refused = None
        holds = {
            "empty": not self.came,
            "runs": self.runs,
            "waits": self.waits,
            "failed": self.count("failed"),
            "done": self.count("done") == len(self.came),
            "stopped": self.count("done"),
            "refused": refused,
            "approved": agreed,
            "superseded": not self.latest,
            "next": self.enforcer is not None and self.enforcer.acts,
        }
        return next((state for state, so in holds.items() if so), "proposed")

    @property
    def steps(self) -> tuple[tuple[int, Any, CameOf], ...]:
        """Those that are shown, with their numbers and what came of them."""
        every, unused = self.record.steps, self.state in ("superseded", "proposed", "refused")
        numbers = steps_about(self.record, self.wanted)
        return tuple((at, every[at - 1], self.came[at - 1]._replace(unused=unused)) for at in numbers)

    @property
    def holding(self) -> Mapping[str, str]:
        """The gates that lately held back steps of it, with their reasons."""
        held, since = self.record.held, self.record.updated - 60
        return {one.gate: one.reason for one in held if one.updated >= since and one.gate not in _OF_PLAN}


def _came(record: PlanRecord, number: int, step: Any) -> CameOf:
    own = sorted((one for one in record.migrations if one.step == number), key=lambda one: one.created)
    if not own:
        held = [one for one in record.held if one.step == number and one.gate not in _OF_PLAN]
        if not held:
            return CameOf("waiting", record.updated)
        last = max(held, key=lambda one: one.updated)
        return CameOf("held", last.updated, last.reason)
    at = own[-1].created
    if any(one.state in OPEN_STATES for one in own):
        seconds = float(step.get("seconds", 0))
        share = 100 * max(0.0, time.time() - at) / seconds if seconds else 0.0
        return CameOf("migrating", at, percent=min(99, round(share)) if share else None)
    if any(one.state is IntentState.FAILED for one in own):
        return CameOf("failed", at, next((one.reason for one in reversed(own) if one.reason), ""))
    return CameOf("done", at, took=max(one.updated for one in own) - own[0].created)


_MOST_KEPT = 100
#: How long a person waits for a plan at most.
_MOST_SECONDS = 30.0


class MadePlan(NamedTuple):
    document: Document
    #: The plan that it takes back, if any.
    undoes: str | None = None
    #: VMs that stay where that plan took them, each as (id, name, why).
    kept: tuple[tuple[str, str, str], ...] = ()


class MadePlans:
    """Makes plans; each method raises `UserError`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        preload(__name__)  # the first plan of this process waits for less
        self._lock = threading.Lock()
        self._known = Latest[str, MadePlan](_MOST_KEPT)

    def plan(self, cluster: Cluster, staying: Mapping[str, str]) -> MadePlan:
        """What would be done now if these VMs stayed where they are, with the reasons."""
        settings = self._config.section("enforcer", EnforcerSettings)
        seconds = min(plans.planning_seconds(settings), _MOST_SECONDS)
        found = read_engine_state(self._config, ENGINE_SECONDS)
        made = planned_in_process(found, cluster.id, seconds, staying)
        record = plan_record(made, found.snapshot, found.not_now(made))
        return self._keep_plan(MadePlan(msgspec.to_builtins(record)))

    def undo(self, record: PlanRecord) -> MadePlan:
        """What would take back what a plan has done."""
        snapshot = inventory.snapshot(config=self._config, deadline=ENGINE_SECONDS)
        found = way_back(self._config, snapshot, record)
        kept = tuple((one.id, one.name, one.because) for one in found.kept)
        return self._keep_plan(MadePlan(msgspec.to_builtins(found.clusters[0]), record.id, kept))

    def room(self, snapshot: Snapshot, vm: Vm) -> plans.RoomFound:
        """Which migrations let a VM start that no host takes; kept, to be carried out."""
        found = in_process(plans.room_for, snapshot, vm, seconds=_MOST_SECONDS)
        if found.plan.steps:
            self._keep_plan(MadePlan(msgspec.to_builtins(found.plan)))
        return found

    def foreseen(self, snapshot: Snapshot, change: Change) -> WhatIfDocument:
        """What would come of a change, if what is configured is repaired."""
        settings = self._config.section("enforcer", EnforcerSettings)
        repair = plans.plan_options(settings).repair
        return in_process(preview, snapshot, change, repair=repair, seconds=_MOST_SECONDS)

    def maintenance(self, hosts: Sequence[str], stopped: Collection[str], back: Return) -> ClusterMaintenance:
        """What a rolling maintenance of hosts of one cluster would be now."""
        found = read_engine_state(self._config, ENGINE_SECONDS)
        options = plans.maintenance_options(found, hosts, stopped=stopped, back=back)
        return in_process(plans.maintenance_planned, found.snapshot, hosts, options, seconds=_MOST_SECONDS)

    def check_rounds(self, snapshot: Snapshot, hosts: Sequence[Host], stopped: Sequence[str]) -> None:
        """Raise `UserError` if some of these hosts cannot become empty."""
        in_process(in_order_of_plan, snapshot, hosts, stopped, self._config.ha, seconds=_MOST_SECONDS)

    def known(self, plan: str) -> MadePlan | None:
        with self._lock:
            return self._known.get(plan)

    def _keep_plan(self, made: MadePlan) -> MadePlan:
        with self._lock:
            self._known[made.document["id"]] = made
        return made
