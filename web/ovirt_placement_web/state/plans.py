"""The life of a plan, from what the store says: how far it is, what came of each step, what holds it back."""

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from ovirt_placement.answers.document import duration_text, fewest_text
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
_NOT_CARRIED_OUT = ("Superseded", "Proposed")
_SOON = "It opens by itself as soon as migrations under way have ended."
_LATER = "It opens by itself after a while."
#: What opens a gate, in a sentence.
_OPENS = {
    "vm_limit": "It opens by itself once the last hour has fewer migrations of the VM.",
    "cooldown": _LATER,
    "just_moved": _LATER,
    "exclusion": "It opens once the VM, host or group is excluded no more, by configuration or tag.",
    "hold": "It opens once the violation has lasted long enough.",
    "windows": "It opens with the next time window of the configuration.",
    "cluster_upgrade": "It opens once the upgrade of the cluster has ended.",
    "host_maintenance": "It opens once the host is back from maintenance.",
    "host_empty": "It opens once no VM is left on the host.",
    "movement": "It opens once what else moves the VM, its host or its group has ended.",
    "backup": "It opens once the backup of the VM has ended.",
    "legality": "It opens once the step violates no rule: the enforcer plans again after each change.",
    "engine_at_once": _SOON,
    "cluster_at_once": _SOON,
    "host_at_once": _SOON,
    "cluster_cycle_limit": "It opens with the next look at the cluster.",
    "approval": "It opens when a person with the permit migrate_vm approves the plan.",
    "leader": "It opens once ovirt-enforcer is started.",
    "mode": "It opens once the enforcer is configured to approve or enforce.",
    "breaker": "It opens by itself after a while; then one migration is tried.",
    "pause": "It opens once migrations are resumed, on the overview.",
    "cluster_limit": "It opens by itself once the last hour has fewer migrations in the cluster.",
}


class CameOf(NamedTuple):
    """What came of a step."""

    text: str
    tone: str
    why: str
    #: When, in seconds since the epoch.
    at: float
    begun: bool


class Stage(NamedTuple):
    """One of the four steps of a plan's life; its state is done, now, waits, failed or later."""

    name: str
    state: str
    text: str
    at: float | None = None


class GateState(NamedTuple):
    """Whether a gate is open: good, bad or wait; and what would open it."""

    tone: str
    text: str
    opens: str = ""


class Life(NamedTuple):
    """How far a plan is."""

    record: PlanRecord
    #: Its state in a word or two, and how it is coloured.
    text: str
    tone: str
    waits: bool
    #: Whether a migration of it runs.
    runs: bool
    steps: tuple[tuple[int, Any, CameOf], ...]
    words: Sequence[UserAction] = ()
    stages: tuple[Stage, ...] = ()
    gates: tuple[GateState, ...] = ()

    @property
    def done(self) -> bool:
        """Whether a migration of it has ended well."""
        return any(one.state is IntentState.DONE for one in self.record.migrations)

    @property
    def left(self) -> tuple[Any, ...]:
        """What it does not repair."""
        return remaining(self.record)


def life(
    record: PlanRecord,
    waiting: WaitingPlan | None = None,
    words: Sequence[UserAction] = (),
    enforcer: EnforcementRecord | None = None,
    *,
    paused: str = "",
    latest: bool = False,
    wanted: Wanted | None = None,
) -> Life:
    """What is known of a plan.

    `waiting` is the one that waits in its cluster, `latest` says whether this is the last one that was made,
    `paused` who has paused migrations there, and of many steps those that concern what is `wanted` are shown.
    """
    said = {one.kind: one for one in words}
    agreed = next((one for one in reversed(words) if one.kind in _AGREED), None)
    refused = said.get(UserActionKind.REFUSE)
    since = waiting.since if waiting is not None and waiting.plan == record.id else None
    came = {number: _came(record, number, step) for number, step in enumerate(steps(record), 1)}
    text, tone = _state(record, came.values(), waits=since is not None)
    if text == "Planned":
        text, tone = _unbegun(agreed, refused, enforcer, latest=latest)
    if text in _NOT_CARRIED_OUT or text.startswith("Refused"):
        came = {number: one._replace(text="Not carried out") for number, one in came.items()}
    shown = came if wanted is None else steps_about(record, wanted)
    found = Life(
        record,
        text,
        tone,
        waits=since is not None,
        runs=runs(record),
        steps=tuple((number, steps(record)[number - 1], came[number]) for number in shown),
        words=words,
    )
    if not came:
        return found
    planned = f"proven {fewest_text(True)}" if record.document.get("proven") else ""
    return found._replace(
        stages=(
            Stage("Planned", "done", planned, record.created),
            _approval(found, since, agreed, refused, enforcer),
            *_carrying_out(found, list(came.values())),
        ),
        gates=tuple(_gates(found, enforcer, agreed, paused)),
    )


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


def _ended(came: Iterable[CameOf]) -> int:
    return sum(one.tone == "success" for one in came)


def _failed(came: Iterable[CameOf]) -> int:
    return sum(one.tone == "danger" for one in came)


def _state(record: PlanRecord, came: Collection[CameOf], *, waits: bool) -> tuple[str, str]:
    count, ended = len(came), _ended(came)
    if not count:
        return ("Nothing to migrate", "quiet")
    if runs(record):
        return (f"Migrating: {ended} of {count} done", "info")
    if waits:
        return ("Waiting for approval", "warning")
    if failed := _failed(came):
        return (f"Failed at {counted(failed, 'step')}", "danger")
    if ended == count:
        begun = min(one.created for one in record.migrations)
        took = max(one.updated for one in record.migrations) - begun
        return (f"Done in {duration_text(took)}", "success")
    return (f"Stopped after {ended} of {count}", "quiet") if ended else ("Planned", "quiet")


def _unbegun(
    agreed: UserAction | None, refused: UserAction | None, enforcer: EnforcementRecord | None, *, latest: bool
) -> tuple[str, str]:
    if refused is not None and (agreed is None or refused.created > agreed.created):
        return (f"Refused by {refused.login}", "danger")
    if agreed is not None:
        return (f"Approved by {agreed.login}", "info")
    if not latest:
        return ("Superseded", "quiet")
    return ("Proposed", "info") if enforcer is None or not enforcer.acts else ("About to begin", "info")


def _approval(
    found: Life,
    since: float | None,
    agreed: UserAction | None,
    refused: UserAction | None,
    enforcer: EnforcementRecord | None,
) -> Stage:
    if since is not None:
        return Stage("Approval", "waits", "waiting since then", since)
    if found.text.startswith("Refused") and refused is not None:
        return Stage("Approval", "failed", f"refused by {refused.login}", refused.created)
    if agreed is not None:
        return Stage("Approval", "done", f"by {agreed.login}", agreed.created)
    if found.record.migrations or (enforcer is not None and enforcer.mode == "enforce"):
        return Stage("Approval", "done", "not asked for")
    return Stage("Approval", "later", "superseded" if found.text == "Superseded" else "")


def _carrying_out(found: Life, came: Sequence[CameOf]) -> Iterator[Stage]:
    """Whether it migrates, and whether what it was to repair is repaired."""
    record, count, ended, failed = found.record, len(came), _ended(came), _failed(came)
    if found.runs:
        yield Stage("Migrate", "now", f"{ended} of {count} done")
    elif failed:
        yield Stage("Migrate", "failed", f"{counted(failed, 'step')} failed")
    elif ended:
        yield Stage("Migrate", "done" if ended == count else "now", f"{ended} of {count} done")
    else:
        seconds = duration_text(float(record.document.get("seconds", 0)))
        yield Stage("Migrate", "later", f"{counted(count, 'step')}, about {seconds}")
    outcomes = {one.step: one.outcome for one in record.migrations if one.outcome is not None}
    violated = sorted({rule.name for one in outcomes.values() for rule in one.rules if not rule.holds})
    if ended < count or found.runs:
        yield Stage("Verify", "later", "rules are checked again")
    elif violated:
        yield Stage("Verify", "failed", f"still violated: {', '.join(violated[:3])}")
    else:
        gain = sum(one.gain for one in outcomes.values())
        yield Stage("Verify", "done" if outcomes else "now", f"{counted(gain, 'rule')} repaired")


def _gates(
    found: Life, enforcer: EnforcementRecord | None, agreed: UserAction | None, paused: str
) -> Iterator[GateState]:
    """Of a plan that is still to be carried out, what stands in its way, and what does not."""
    over = found.text == "Superseded" or found.text.startswith(("Refused", "Stopped"))
    if over or all(one.begun for _, _, one in found.steps):
        return
    if found.waits:
        yield GateState("wait", "Approval: waiting", _OPENS["approval"])
    elif agreed is not None:
        yield GateState("good", f"Approved by {agreed.login}")
    if enforcer is not None:
        if not enforcer.acts:
            yield GateState("bad", "Mode observe: nothing is migrated", _OPENS["mode"])
        elif not enforcer.leader:
            yield GateState("bad", "No enforcer runs", _OPENS["leader"])
        else:
            yield GateState("good", f"The enforcer runs in mode {enforcer.mode}")
        failures = [one.reason for one in enforcer.breakers if one.cluster.id == found.record.cluster]
        why = f"Too many failures: {failures[0]}" if failures else ""
        yield _gate("breaker", why, "Migrations did not fail lately")
        yield _gate("pause", paused, "Not paused")
    lately = [one for one in found.record.held if one.updated >= found.record.updated - 60]
    for name, reason in {one.gate: one.reason for one in lately if one.gate not in _OF_PLAN}.items():
        text = f"{name.replace('_', ' ').capitalize()}: {reason}"
        yield GateState("wait", text, _OPENS.get(name, _LATER))


def _gate(name: str, why_closed: str, fine: str) -> GateState:
    return GateState("bad", why_closed, _OPENS[name]) if why_closed else GateState("good", fine)


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
