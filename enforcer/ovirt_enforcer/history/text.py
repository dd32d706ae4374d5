"""The history in lines: each plan with its steps, what held them back, and what each of them brought."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from ovirt_enforcer.history.selecting import EVERYTHING, Wanted, remaining, steps, steps_about
from ovirt_enforcer.history.superseding import FoldedPlans
from ovirt_placement.model.amounts import counted
from ovirt_placement.store.history import HeldStep, PlanRecord, RecordedMigration
from ovirt_placement.store.intents import IntentState


def plan_text(record: PlanRecord, wanted: Wanted = EVERYTHING, superseded_by: str | None = None) -> str:
    """A plan; of its steps those that concern what is called so, if anything is named."""
    lines = [f"{moment(record.updated)}  plan {record.id}, cluster {_cluster(record)}: {_summary(record)}"]
    if superseded_by is not None:
        lines.append(f"  superseded by plan {superseded_by}")
    for number in steps_about(record, wanted):
        lines += _step_lines(record, number)
    lines += _remaining_lines(record)
    for one in record.document.get("refused", ()):
        lines.append(f"  Left out: {step_text(one['step'])}: {'; '.join(one['because'])}")
    return "\n".join(lines)


def folded_text(folded: FoldedPlans) -> str:
    """Superseded plans that came to nothing, in a line."""
    first, last = folded.plans[0], folded.plans[-1]
    by = f"superseded by plan {folded.superseded_by}, nothing was migrated"
    if first is last:
        return f"{moment(last.updated)}  plan {last.id}, cluster {_cluster(last)}: {_summary(last)}; {by}"
    return (
        f"{moment(last.updated)}  cluster {_cluster(last)}: {len(folded.plans)} plans since"
        f" {moment(first.updated)}, {by} (--all shows them)"
    )


def migration_text(migration: RecordedMigration) -> str:
    """A migration of which no plan is known."""
    return (
        f"{moment(migration.created)}  migration of {migration.vm} to {migration.target}: {_end(migration)}"
    )


def moment(seconds: float) -> str:
    """Seconds since the epoch as the time of day here."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(sep=" ", timespec="seconds")


def step_text(step: Mapping[str, Any]) -> str:
    """A step as its plan has it, without the reason."""
    moves = ", ".join(f"{vm['name']} from {vm['from']['name']}" for vm in step["vms"])
    return f"{moves} to {step['to']['name']}"


def held_text(held: HeldStep) -> str:
    """What held a step back."""
    often = "once" if held.times == 1 else f"{held.times} times, last"
    return f"held back {often} at {moment(held.updated)} ({held.gate}): {held.reason}"


def _cluster(record: PlanRecord) -> str:
    named: str = record.document.get("cluster", {}).get("name", record.cluster)
    return named


def _summary(record: PlanRecord) -> str:
    document = record.document
    migrations = sum(len(step["vms"]) for step in steps(record))
    if not migrations:
        return "nothing that a migration could repair"
    said = [counted(migrations, "migration")]
    if strategy := document.get("strategy"):
        seed = document.get("seed")
        said.append(strategy if seed is None else f"{strategy}, seed {seed}")
    bound = document.get("at_least")
    said.append("proven the fewest" if document.get("proven") else f"at least {bound} are needed")
    if seconds := document.get("seconds"):
        said.append(f"thought to take {seconds:.0f} s")
    return ", ".join(said)


def _step_lines(record: PlanRecord, number: int) -> Iterator[str]:
    step = steps(record)[number - 1]
    reason = step.get("reason")
    yield f"  {number}. {step_text(step)}{f': {reason}' if reason else ''}"
    yield from (f"       {held_text(held)}" for held in record.held if held.step == number)
    names = {vm["id"]: vm["name"] for vm in step["vms"]}
    for migration in record.migrations:
        if migration.step == number:
            whose = f"{names.get(migration.vm, migration.vm)} " if len(names) > 1 else ""
            yield f"       {moment(migration.created)} {whose}{_end(migration)}"


def _end(migration: RecordedMigration) -> str:
    if migration.state is IntentState.DONE:
        end = f"done in {migration.seconds:.0f} s"
    elif migration.state is IntentState.FAILED:
        end = f"failed: {migration.reason}"
    else:
        end = "has not ended" + (f": {migration.reason}" if migration.reason else "")
    return f"{end}{_brought(migration)}"


def _brought(migration: RecordedMigration) -> str:
    if migration.outcome is None or not migration.outcome.rules:
        return ""
    states = (
        f"{rule.name} is {'satisfied' if rule.holds else 'violated'}" for rule in migration.outcome.rules
    )
    return f"; afterwards {', '.join(states)}"


def _remaining_lines(record: PlanRecord) -> Iterable[str]:
    for rule in remaining(record):
        groups, vms = (", ".join(named["name"] for named in rule[field]) for field in ("groups", "vms"))
        yield f"  Not repaired: {groups} ({vms})"
        yield from (f"    - {because}" for because in rule.get("because", ()))
