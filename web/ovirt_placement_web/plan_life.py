"""The life of a plan, from what the store says: how far it is, what came of each step, what holds it back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from ovirt_enforcer.history import Wanted, remaining, steps, steps_about
from ovirt_placement.answers.document import duration_text, fewest_text
from ovirt_placement.answers.status.enforcement import EnforcementRecord
from ovirt_placement.model.amounts import counted
from ovirt_placement.store.approvals import WaitingPlan
from ovirt_placement.store.history import PlanRecord, RecordedMigration
from ovirt_placement.store.intents import IntentState
from ovirt_placement.store.user_actions import UserAction, UserActionKind

_ENDED = (IntentState.DONE, IntentState.FAILED)
_AGREED = (UserActionKind.APPROVE, UserActionKind.APPLY, UserActionKind.UNDO)
#: These gates hold the plan as a whole, not a step of it.
_OF_PLAN = ("approval", "mode", "pause", "breaker")


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
    #: Whether a migration of it runs, and whether one has ended well.
    runs: bool
    done: bool
    steps: tuple[tuple[int, Any, CameOf], ...]
    left: tuple[Any, ...]
    words: tuple[UserAction, ...] = ()
    stages: tuple[Stage, ...] = ()
    gates: tuple[GateState, ...] = ()


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
    and `paused` who has paused migrations there.
    """
    waits = waiting is not None and waiting.plan == record.id
    document = steps(record)
    agreed = next((one for one in reversed(words) if one.kind in _AGREED), None)
    refused = next((one for one in reversed(words) if one.kind is UserActionKind.REFUSE), None)
    came = {number: _came(record, number) for number in range(1, len(document) + 1)}
    ended = sum(one.tone == "success" for one in came.values())
    failed = sum(one.tone == "danger" for one in came.values())
    runs = any(one.state not in _ENDED for one in record.migrations)
    text, tone = _state(record, len(document), ended, failed, runs=runs, waits=waits)
    if text == "Planned":
        text, tone = _unbegun(agreed, refused, enforcer, latest=latest)
    if text in ("Superseded", "Proposed") or text.startswith("Refused"):
        came = {number: one._replace(text="Not carried out") for number, one in came.items()}
    shown = [number for number in came if wanted is None or number in steps_about(record, wanted)]
    found = Life(
        record=record,
        text=text,
        tone=tone,
        waits=waits,
        runs=runs,
        done=any(one.state is IntentState.DONE for one in record.migrations),
        steps=tuple((number, document[number - 1], came[number]) for number in shown),
        left=remaining(record),
        words=tuple(words),
    )
    if not document:
        return found
    stages = _stages(found, waiting, agreed, refused, enforcer, (len(document), ended, failed))
    return found._replace(stages=stages, gates=_gates(found, enforcer, agreed, paused))


def _came(record: PlanRecord, number: int) -> CameOf:
    own = [one for one in record.migrations if one.step == number]
    if own:
        steps_seconds = float(steps(record)[number - 1].get("seconds", 0))
        return _migrated(own, steps_seconds)
    held = [one for one in record.held if one.step == number and one.gate not in _OF_PLAN]
    if not held:
        return CameOf("Waiting", "quiet", "", record.updated, begun=False)
    last = max(held, key=lambda one: one.updated)
    return CameOf("Held back", "warning", last.reason, last.updated, begun=False)


def _migrated(own: Sequence[RecordedMigration], seconds: float) -> CameOf:
    """`seconds` is how long the step was expected to take: the engine does not say how far it is."""
    last = max(own, key=lambda one: one.created)
    if any(one.state not in _ENDED for one in own):
        share = 100 * max(0.0, time.time() - last.created) / seconds if seconds else 0.0
        how_far = f", about {min(99, round(share))} %" if share else ""
        return CameOf(f"Migrating{how_far}", "info", "", last.created, begun=True)
    if any(one.state is IntentState.FAILED for one in own):
        why = next((one.reason for one in reversed(own) if one.reason), "")
        return CameOf("Failed", "danger", why or "", last.created, begun=True)
    took = max(one.updated for one in own) - min(one.created for one in own)
    return CameOf(f"Done in {duration_text(took)}", "success", "", last.created, begun=True)


def _state(
    record: PlanRecord, count: int, ended: int, failed: int, *, runs: bool, waits: bool
) -> tuple[str, str]:
    if not count:
        return ("Nothing to migrate", "quiet")
    if runs:
        return (f"Migrating: {ended} of {count} done", "info")
    if waits:
        return ("Waiting for approval", "warning")
    if failed:
        return (f"Failed at {counted(failed, 'step')}", "danger")
    if ended == count:
        times = [one.created for one in record.migrations], [one.updated for one in record.migrations]
        return (f"Done in {duration_text(max(times[1]) - min(times[0]))}", "success")
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


def _stages(
    found: Life,
    waiting: WaitingPlan | None,
    agreed: UserAction | None,
    refused: UserAction | None,
    enforcer: EnforcementRecord | None,
    counts: tuple[int, int, int],
) -> tuple[Stage, ...]:
    count, ended, failed = counts
    record, begun = found.record, bool(found.record.migrations)
    planned = Stage(
        "Planned",
        "done",
        f"proven {fewest_text(True)}" if record.document.get("proven") else "",
        record.created,
    )
    if found.waits and waiting is not None:
        approval = Stage("Approval", "waits", "waiting since then", waiting.since)
    elif found.text.startswith("Refused") and refused is not None:
        approval = Stage("Approval", "failed", f"refused by {refused.login}", refused.created)
    elif agreed is not None:
        approval = Stage("Approval", "done", f"by {agreed.login}", agreed.created)
    elif begun or (enforcer is not None and enforcer.mode == "enforce"):
        approval = Stage("Approval", "done", "not asked for")
    else:
        approval = Stage("Approval", "later", "superseded" if found.text == "Superseded" else "")
    seconds = duration_text(float(record.document.get("seconds", 0)))
    if found.runs:
        migrate = Stage("Migrate", "now", f"{ended} of {count} done")
    elif failed:
        migrate = Stage("Migrate", "failed", f"{counted(failed, 'step')} failed")
    elif ended:
        migrate = Stage("Migrate", "done" if ended == count else "now", f"{ended} of {count} done")
    else:
        migrate = Stage("Migrate", "later", f"{counted(count, 'step')}, about {seconds}")
    outcomes = [one.outcome for one in record.migrations if one.outcome is not None]
    violated = sorted({rule.name for one in outcomes for rule in one.rules if not rule.holds})
    if ended < count or found.runs:
        verify = Stage("Verify", "later", "rules are checked again")
    elif violated:
        verify = Stage("Verify", "failed", f"still violated: {', '.join(violated[:3])}")
    else:
        gain = sum({one.step: one.outcome.gain for one in record.migrations if one.outcome}.values())
        verify = Stage("Verify", "done" if outcomes else "now", f"{counted(gain, 'rule')} repaired")
    return (planned, approval, migrate, verify)


def _gates(
    found: Life, enforcer: EnforcementRecord | None, agreed: UserAction | None, paused: str
) -> tuple[GateState, ...]:
    """Of a plan that is still to be carried out, what stands in its way, and what does not."""
    open_steps = [one for _, _, one in found.steps if not one.begun]
    if not open_steps or found.text in ("Superseded",) or found.text.startswith(("Refused", "Stopped")):
        return ()
    gates = []
    if found.waits:
        gates.append(GateState("wait", "Approval: waiting", _OPENS["approval"]))
    elif agreed is not None:
        gates.append(GateState("good", f"Approved by {agreed.login}"))
    if enforcer is not None:
        cluster = found.record.cluster
        failures = next((one.reason for one in enforcer.breakers if one.cluster.id == cluster), "")
        if not enforcer.acts:
            gates.append(GateState("bad", "Mode observe: nothing is migrated", _OPENS["mode"]))
        elif not enforcer.leader:
            gates.append(GateState("bad", "No enforcer runs", _OPENS["leader"]))
        else:
            gates.append(GateState("good", f"The enforcer runs in mode {enforcer.mode}"))
        why = f"Too many failures: {failures}" if failures else ""
        gates.append(_gate("breaker", why, "Migrations did not fail lately"))
        gates.append(_gate("pause", paused, "Not paused"))
    held: dict[str, str] = {}
    for one in found.record.held:
        if one.gate not in _OF_PLAN and one.updated >= found.record.updated - 60:
            held[one.gate] = one.reason
    gates += [
        GateState("wait", f"{name.replace('_', ' ').capitalize()}: {why}", _OPENS.get(name, _LATER))
        for name, why in held.items()
    ]
    return tuple(gates)


def _gate(name: str, why_closed: str, fine: str) -> GateState:
    return GateState("bad", why_closed, _OPENS[name]) if why_closed else GateState("good", fine)
