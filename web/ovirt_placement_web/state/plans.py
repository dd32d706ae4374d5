"""The life of a plan, from what the store says: how far it is, what came of each step, what holds it back."""

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from ovirt_enforcer.history import Wanted, remaining, steps, steps_about
from ovirt_enforcer.memory import read_engine_state, way_back
from ovirt_enforcer.orders import in_order_of_plan
from ovirt_enforcer.planners import in_process, planned_in_process, preload
from ovirt_enforcer.plans import (
    RoomFound,
    failure_domains,
    maintenance_options,
    maintenance_planned,
    plan_options,
    planning_seconds,
    room_for,
)
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.document import duration_text
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.maintenance import ClusterMaintenance
from ovirt_placement.answers.plans.text import Document
from ovirt_placement.answers.plans.what_if import WhatIfDocument, preview
from ovirt_placement.answers.status import EnforcementRecord
from ovirt_placement.config import Config
from ovirt_placement.forecast.changes import Change
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import Cluster, Snapshot, Vm
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.model.names import counted
from ovirt_placement.store.enforcer.history import PlanRecord
from ovirt_placement.store.enforcer.intents import IntentState
from ovirt_placement.store.orders import WaitingPlan
from ovirt_placement.store.user_actions import UserAction, UserActionKind
from ovirt_placement_web.bounds import Latest
from ovirt_placement_web.settings import ENGINE_SECONDS
from ovirt_placement_web.state.sources import is_open, runs

_AGREED = (UserActionKind.APPROVE, UserActionKind.APPLY, UserActionKind.UNDO)
#: These gates hold the plan as a whole, not a step of it.
_OF_PLAN = ("approval", "mode", "pause", "breaker")


class CameOf(NamedTuple):
    """What came of a step."""

    text: str
    tone: str
    why: str
    #: When, in seconds since the epoch.
    at: float
    begun: bool


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
    def since(self) -> float | None:
        """Since when it waits for a person's word, if it does."""
        one = self.waiting
        return one.since if one is not None and one.plan == self.record.id else None

    @property
    def waits(self) -> bool:
        return self.since is not None

    @property
    def runs(self) -> bool:
        """Whether a migration of it runs."""
        return runs(self.record)

    @property
    def done(self) -> bool:
        """Whether a migration of it has ended well."""
        return any(one.state is IntentState.DONE for one in self.record.migrations)

    @property
    def left(self) -> tuple[Any, ...]:
        """What it does not repair."""
        return remaining(self.record)

    @property
    def agreed(self) -> UserAction | None:
        return next((one for one in reversed(self.words) if one.kind in _AGREED), None)

    @property
    def refused(self) -> UserAction | None:
        return next((one for one in reversed(self.words) if one.kind is UserActionKind.REFUSE), None)

    @cached_property
    def came(self) -> tuple[CameOf, ...]:
        """Of all steps."""
        return tuple(_came(self.record, number, step) for number, step in enumerate(steps(self.record), 1))

    @property
    def ended(self) -> int:
        return sum(one.tone == "success" for one in self.came)

    @property
    def failed(self) -> int:
        return sum(one.tone == "danger" for one in self.came)

    @cached_property
    def state(self) -> tuple[str, str]:
        """In a word or two, and how it is coloured."""
        count, ended, agreed, refused = len(self.came), self.ended, self.agreed, self.refused
        if not count:
            return ("Nothing to migrate", "quiet")
        if self.runs:
            return (f"Migrating: {ended} of {count} done", "info")
        if self.waits:
            return ("Waiting for approval", "warning")
        if self.failed:
            return (f"Failed at {counted(self.failed, 'step')}", "danger")
        if ended == count:
            begun = min(one.created for one in self.record.migrations)
            took = max(one.updated for one in self.record.migrations) - begun
            return (f"Done in {duration_text(took)}", "success")
        if ended:
            return (f"Stopped after {ended} of {count}", "quiet")
        if refused is not None and (agreed is None or refused.created > agreed.created):
            return (f"Refused by {refused.login}", "danger")
        if agreed is not None:
            return (f"Approved by {agreed.login}", "info")
        if not self.latest:
            return ("Superseded", "quiet")
        acts = self.enforcer is not None and self.enforcer.acts
        return ("About to begin" if acts else "Proposed", "info")

    @property
    def text(self) -> str:
        return self.state[0]

    @property
    def tone(self) -> str:
        return self.state[1]

    @property
    def steps(self) -> tuple[tuple[int, Any, CameOf], ...]:
        """Those that are shown, with their numbers and what came of them."""
        came = self.came
        if self.text.startswith(("Superseded", "Proposed", "Refused")):
            came = tuple(one._replace(text="Not carried out") for one in came)
        every, numbers = steps(self.record), steps_about(self.record, self.wanted)
        return tuple((number, every[number - 1], came[number - 1]) for number in numbers)

    @property
    def repaired(self) -> tuple[bool, int, Sequence[str]]:
        """Whether that is known, of how many rules, and which are violated still."""
        outcomes = {one.step: one.outcome for one in self.record.migrations if one.outcome is not None}
        violated = sorted({rule.name for one in outcomes.values() for rule in one.rules if not rule.holds})
        return bool(outcomes), sum(one.gain for one in outcomes.values()), violated

    @property
    def holding(self) -> Mapping[str, str]:
        """The gates that lately held back steps of it, with their reasons."""
        held, since = self.record.held, self.record.updated - 60
        return {one.gate: one.reason for one in held if one.updated >= since and one.gate not in _OF_PLAN}

    @property
    def failures(self) -> Sequence[str]:
        """Why the breaker of its cluster is open."""
        breakers = self.enforcer.breakers if self.enforcer is not None else ()
        return [one.reason for one in breakers if one.cluster.id == self.record.cluster]


def _came(record: PlanRecord, number: int, step: Any) -> CameOf:
    """What came of a step. The engine does not say how far a migration is: that is by what was expected."""
    own = sorted((one for one in record.migrations if one.step == number), key=lambda one: one.created)
    if not own:
        held = [one for one in record.held if one.step == number and one.gate not in _OF_PLAN]
        if not held:
            return CameOf("Waiting", "quiet", "", record.updated, begun=False)
        last = max(held, key=lambda one: one.updated)
        return CameOf("Held back", "warning", last.reason, last.updated, begun=False)
    at = own[-1].created
    if any(is_open(one) for one in own):
        seconds = float(step.get("seconds", 0))
        share = 100 * max(0.0, time.time() - at) / seconds if seconds else 0.0
        how_far = f", about {min(99, round(share))} %" if share else ""
        return CameOf(f"Migrating{how_far}", "info", "", at, begun=True)
    if any(one.state is IntentState.FAILED for one in own):
        why = next((one.reason for one in reversed(own) if one.reason), "")
        return CameOf("Failed", "danger", why or "", at, begun=True)
    took = max(one.updated for one in own) - own[0].created
    return CameOf(f"Done in {duration_text(took)}", "success", "", at, begun=True)


#: This many are kept, the latest.
_MOST = 100
#: How long a person waits for a plan at most.
_MOST_SECONDS = 30.0


class MadePlan(NamedTuple):
    """A plan that somebody has looked at."""

    document: Document
    #: The plan that it takes back, if any.
    undoes: str | None = None
    #: VMs that stay where that plan took them, each as (id, name, why).
    kept: tuple[tuple[str, str, str], ...] = ()


class MadePlans:
    """Makes them, and knows those that were made last."""

    def __init__(self, config: Config) -> None:
        self._config = config
        preload(__name__)  # the first plan of this process waits for less
        self._lock = threading.Lock()
        self._known = Latest[str, MadePlan](_MOST)

    def plan(self, cluster: Cluster, staying: Mapping[str, str]) -> MadePlan:
        """What would be done now if these VMs stayed where they are, with the reasons. Raises `UserError`."""
        settings = self._config.section("enforcer", EnforcerSettings)
        seconds = min(planning_seconds(settings), _MOST_SECONDS)
        found = read_engine_state(self._config, ENGINE_SECONDS)
        made = planned_in_process(found, cluster.id, seconds, staying)
        return self._keep_plan(
            MadePlan(msgspec.to_builtins(plan_record(made, found.snapshot, found.not_now(made))))
        )

    def undo(self, record: PlanRecord) -> MadePlan:
        """What would take back what a plan has done. Raises `UserError`."""
        snapshot = inventory.snapshot(config=self._config, deadline=ENGINE_SECONDS)
        found = way_back(self._config, snapshot, record)
        kept = tuple((one.id, one.name, one.because) for one in found.kept)
        return self._keep_plan(MadePlan(msgspec.to_builtins(found.clusters[0]), record.id, kept))

    def room(self, snapshot: Snapshot, vm: Vm) -> RoomFound:
        """Which migrations let a VM start that no host takes; kept, to be carried out. Raises `UserError`."""
        found = in_process(room_for, snapshot, vm, seconds=_MOST_SECONDS)
        if found.plan.steps:
            self._keep_plan(MadePlan(msgspec.to_builtins(found.plan)))
        return found

    def foreseen(self, snapshot: Snapshot, change: Change) -> WhatIfDocument:
        """What would come of a change, if what is configured is repaired. Raises `UserError`."""
        settings = self._config.section("enforcer", EnforcerSettings)
        repair = plan_options(settings).repair
        return in_process(preview, snapshot, change, repair=repair, seconds=_MOST_SECONDS)

    def maintenance(self, hosts: Sequence[str], stopped: Collection[str], back: Return) -> ClusterMaintenance:
        """What a rolling maintenance of hosts of one cluster would be now. Raises `UserError`."""
        found = read_engine_state(self._config, ENGINE_SECONDS)
        options = maintenance_options(found, hosts, stopped=stopped, back=back)
        return in_process(maintenance_planned, found.snapshot, hosts, options, seconds=_MOST_SECONDS)

    def check_rounds(self, snapshot: Snapshot, hosts: Sequence[str], stopped: Sequence[str]) -> None:
        """Raise `UserError` if some of these hosts cannot become empty."""
        found = [snapshot.host_by_id[host] for host in hosts]
        domains = failure_domains(self._config.ha, snapshot) or ()
        in_process(in_order_of_plan, snapshot, found, stopped, domains, seconds=_MOST_SECONDS)

    def known(self, plan: str) -> MadePlan | None:
        with self._lock:
            return self._known.get(plan)

    def _keep_plan(self, made: MadePlan) -> MadePlan:
        with self._lock:
            self._known[made.document["id"]] = made
        return made
