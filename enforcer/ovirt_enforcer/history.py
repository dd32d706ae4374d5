"""What was decided and what came of it: plans about a VM, host or group in lines; why a VM was not moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Any, NamedTuple

from msgspec.structs import replace

from ovirt_placement.answers.document import fewest_text
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.amounts import counted
from ovirt_placement.model.names import group_name, host_name
from ovirt_placement.model.record import Record
from ovirt_placement.rules.violations import Violation, find_violations
from ovirt_placement.store.history import HeldStep, PlanRecord, RecordedMigration
from ovirt_placement.store.intents import Intent, IntentState
from ovirt_placement.store.user_actions import UserAction

#: A step of a plan, or a rule that is not repaired, as the plan's document has it.
_Part = Mapping[str, Any]


class Subject(StrEnum):
    """What a name is the name of."""

    VM = "VM"
    HOST = "host"
    VM_OR_GROUP = "VM or affinity group"


class Wanted(NamedTuple):
    """What a history is asked about; everything, if the name is empty."""

    name: str = ""
    subject: Subject = Subject.VM_OR_GROUP


EVERYTHING = Wanted()


def about(record: PlanRecord, wanted: Wanted) -> bool:
    """Whether a plan moved, meant to move, or had to leave alone what is called so."""
    return bool(steps_about(record, wanted)) or any(_names(part, wanted) for part in remaining(record))


def steps_about(record: PlanRecord, wanted: Wanted) -> tuple[int, ...]:
    """Numbers of the steps, from 1, that move or repair what is called so, leave it, or lead there."""
    return tuple(
        number for number, step in enumerate(steps(record), 1) if not wanted.name or _names(step, wanted)
    )


def narrowed(record: PlanRecord, wanted: Wanted) -> PlanRecord:
    """A record without the steps, and what came of them, that do not concern what is called so."""
    if not wanted.name:
        return record
    numbers = steps_about(record, wanted)
    return replace(
        record,
        migrations=tuple(one for one in record.migrations if one.step in numbers),
        held=tuple(one for one in record.held if one.step in numbers),
    )


def migrations_about(
    migrations: Iterable[RecordedMigration], wanted: Wanted
) -> tuple[RecordedMigration, ...]:
    """Migrations of which no plan is known have ids alone."""
    hosts = wanted.subject is Subject.HOST
    ids = ((one, (one.source, one.target) if hosts else (one.vm,)) for one in migrations)
    return tuple(one for one, named in ids if not wanted.name or wanted.name in named)


def user_actions_about(
    actions: Iterable[UserAction], plans: Iterable[PlanRecord], name: str
) -> tuple[UserAction, ...]:
    """What people did with these plans, or with what is called so; all of it if the name is empty."""
    known = {plan.id for plan in plans}
    return tuple(
        one
        for one in actions
        if name in ("", one.subject, one.cluster, one.cluster_name) or one.plan in known
    )


def steps(record: PlanRecord) -> tuple[_Part, ...]:
    return tuple(record.document.get("steps", ()))


def remaining(record: PlanRecord) -> tuple[_Part, ...]:
    return tuple(record.document.get("remaining", ()))


def _names(part: _Part, wanted: Wanted) -> bool:
    """Whether a step, or a rule that is not repaired, is about what is called so."""
    if wanted.subject is Subject.HOST:
        named = [part["to"]] if "to" in part else []
        named += [vm["from"] for vm in part.get("vms", ()) if "from" in vm]
    else:
        fields = ("vms",) if wanted.subject is Subject.VM else ("vms", "groups", "repairs")
        named = [one for field in fields for one in part.get(field, ())]
    return any(wanted.name in (one["id"], one["name"]) for one in named)


@dataclass(frozen=True, slots=True)
class FoldedPlans:
    """Plans of a cluster, one after the other, none of which has had a migration before the next came."""

    plans: tuple[PlanRecord, ...]
    #: The plan that took the place of the last.
    superseded_by: str

    @property
    def updated(self) -> float:
        return self.plans[-1].updated


def superseded(records: Iterable[PlanRecord]) -> Mapping[str, str]:
    """Of each plan that was not carried out to its end, the id of the one made next in its cluster."""
    found: dict[str, str] = {}
    latest: dict[str, PlanRecord] = {}
    for record in sorted(records, key=lambda one: (one.updated, one.id)):
        before = latest.get(record.cluster)
        if before is not None and not _carried_out(before):
            found[before.id] = record.id
        latest[record.cluster] = record
    return found


def folded(records: Sequence[PlanRecord], replaced: Mapping[str, str]) -> Iterator[PlanRecord | FoldedPlans]:
    """Put together the superseded plans that came to nothing; the others stay, the latest at the end."""
    parts: list[PlanRecord | FoldedPlans] = []
    for _, of_cluster in groupby(sorted(records, key=lambda one: one.cluster), key=lambda one: one.cluster):
        for idle, some in groupby(of_cluster, key=lambda one: one.id in replaced and not one.migrations):
            run = tuple(some)
            parts += [FoldedPlans(run, replaced[run[-1].id])] if idle else run
    return iter(sorted(parts, key=lambda one: one.updated))


def _carried_out(record: PlanRecord) -> bool:
    """Whether every step has had a migration."""
    return {one.step for one in record.migrations} >= set(range(1, len(steps(record)) + 1))


def plan_text(record: PlanRecord, wanted: Wanted = EVERYTHING, superseded_by: str | None = None) -> str:
    """A plan; of its steps those that concern what is called so, if anything is named."""
    lines = [
        f"{moment(record.updated)}  plan {record.id}, cluster {_cluster_name(record)}: {_summary(record)}"
    ]
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
    first, last, name = folded.plans[0], folded.plans[-1], _cluster_name(folded.plans[-1])
    by = f"superseded by plan {folded.superseded_by}, nothing was migrated"
    if first is last:
        return f"{moment(last.updated)}  plan {last.id}, cluster {name}: {_summary(last)}; {by}"
    since = f"{len(folded.plans)} plans since {moment(first.updated)}"
    return f"{moment(last.updated)}  cluster {name}: {since}, {by} (--all shows them)"


def migration_text(migration: RecordedMigration) -> str:
    """A migration of which no plan is known."""
    title = f"migration of {migration.vm} to {migration.target}"
    return f"{moment(migration.created)}  {title}: {_end_text(migration)}"


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


def _cluster_name(record: PlanRecord) -> str:
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
    needed = f"at least {document.get('at_least')} are needed"
    said.append(f"proven {fewest_text(True)}" if document.get("proven") else needed)
    if seconds := document.get("seconds"):
        said.append(f"estimated to take {seconds:.0f} s")
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
            yield f"       {moment(migration.created)} {whose}{_end_text(migration)}"


def _end_text(migration: RecordedMigration) -> str:
    if migration.state is IntentState.DONE:
        end = f"done in {migration.seconds:.0f} s"
    elif migration.state is IntentState.FAILED:
        end = f"failed: {migration.reason}"
    else:
        end = "has not ended" + (f": {migration.reason}" if migration.reason else "")
    return f"{end}{_brought(migration)}"


def _brought(migration: RecordedMigration) -> str:
    rules = () if migration.outcome is None else migration.outcome.rules
    states = [f"{rule.name} is {'satisfied' if rule.holds else 'violated'}" for rule in rules]
    return f"; afterwards {', '.join(states)}" if states else ""


def _remaining_lines(record: PlanRecord) -> Iterable[str]:
    for rule in remaining(record):
        groups, vms = (", ".join(named["name"] for named in rule[field]) for field in ("groups", "vms"))
        yield f"  Not repaired: {groups} ({vms})"
        yield from (f"    - {because}" for because in rule.get("because", ()))


@dataclass(frozen=True, slots=True)
class KnownHistory:
    """All that shows why a VM stays where it is."""

    snapshot: Snapshot
    #: VMs and rules that a gate holds for now, with the reason, by id.
    frozen: Mapping[str, str]
    held_groups: Mapping[str, str]
    #: The plan that was made last in the VM's cluster.
    plan: PlanRecord | None
    under_way: tuple[Intent, ...]
    #: Migrations of the VM that ended lately, the oldest first.
    ended: tuple[Intent, ...]
    #: Why no enforcer of this engine leads, if none does; and in which settings one differs from those here.
    not_led: str | None
    other_settings: tuple[str, ...] = ()


class UnrepairedRule(Record, frozen=True):
    """A rule that the VM breaks, or shares with those who do, and why that stays so for now."""

    rule: str
    hard: bool
    #: Whether this VM violates it, and not only other members.
    offends: bool
    because: tuple[str, ...]


class WhyNot(Record, frozen=True):
    """Why a VM has not been moved."""

    vm: str
    host: str | None
    #: Why it stays where it is, whatever rule it violates.
    because: tuple[str, ...]
    rules: tuple[UnrepairedRule, ...]


def why_not(vm: Vm, known: KnownHistory) -> WhyNot:
    """Judge a VM by all that is known."""
    found = find_violations(known.snapshot, vm.cluster)
    violations = [one for one in found if vm.id in {*one.offenders, *(place.vm for place in one.locations)}]
    return WhyNot(
        vm=vm.name,
        host=None if vm.host is None else host_name(vm.host, known.snapshot),
        because=tuple(_because(vm, known)) if violations else (),
        rules=tuple(_violated_rule(violation, vm, known) for violation in violations),
    )


def why_not_text(answer: WhyNot) -> str:
    """The answer in lines."""
    where = "runs on no host" if answer.host is None else f"is on {answer.host}"
    if not answer.rules:
        return f"{answer.vm} {where} and violates no rule."
    lines = [f"{answer.vm} {where}."]
    for rule in answer.rules:
        hardness = "hard" if rule.hard else "soft"
        stands = f"violates {rule.rule}" if rule.offends else f"is in {rule.rule}, which is violated"
        lines.append(f"It {stands} ({hardness}):")
        lines += (f"  - {reason}" for reason in rule.because)
    if answer.because:
        lines.append("Why it is still there:")
        lines += (f"  - {reason}" for reason in answer.because)
    return "\n".join(lines)


def _because(vm: Vm, known: KnownHistory) -> Iterator[str]:
    if known.not_led is not None:
        yield known.not_led
    if known.other_settings:
        yield (
            "the enforcer that leads was started with other settings than those here, which this answer goes"
            f" by: {'; '.join(known.other_settings)}"
        )
    for intent in known.under_way:
        if intent.vm == vm.id:
            yield f"its migration to {host_name(intent.target, known.snapshot)} is under way ({intent.state})"
    if vm.id in known.frozen:
        yield known.frozen[vm.id]
    for intent in known.ended:
        if intent.state is IntentState.FAILED:
            yield f"{moment(intent.updated)} to {host_name(intent.target, known.snapshot)}: {intent.reason}"


def _violated_rule(violation: Violation, vm: Vm, known: KnownHistory) -> UnrepairedRule:
    names = " and ".join(group_name(group, known.snapshot) for group in violation.groups)
    return UnrepairedRule(
        rule=f"{names}: {violation.constraint.asks}",
        hard=violation.hard,
        offends=vm.id in violation.offenders,
        because=tuple(_why_unrepaired(violation, known)),
    )


def _why_unrepaired(violation: Violation, known: KnownHistory) -> Iterator[str]:
    for group in violation.groups:
        if group in known.held_groups:
            yield known.held_groups[group]
    if known.plan is None:
        yield "no plan has been made in its cluster lately"
        return
    planned = tuple(_planned(violation, known.plan))
    left = tuple(_left(violation, known.plan))
    yield from (*planned, *left)
    if not planned and not left:
        yield f"plan {known.plan.id}, the last one, was made before it broke"


def _planned(violation: Violation, plan: PlanRecord) -> Iterator[str]:
    """Steps of the last plan that are for the rule, and what became of them."""
    for number, step in enumerate(steps(plan), 1):
        if not any(group["id"] in violation.groups for group in step.get("groups", ())):
            continue
        yield f"plan {plan.id} has step {number} for it: {step_text(step)}{_waits(step)}"
        before = _before(plan, number)
        yield from (
            f"step {held.step}{', which it waits for,' if held.step != number else ''} was {held_text(held)}"
            for held in plan.held
            if held.step == number or held.step in before
        )


def _before(plan: PlanRecord, number: int) -> set[int]:
    """The numbers of all steps that one waits for, be it by way of others."""
    numbers = _after(steps(plan)[number - 1])
    return {*numbers}.union(*(_before(plan, one) for one in numbers))


def _waits(step: _Part) -> str:
    after = " and ".join(map(str, _after(step)))
    return f", after step {after}" if after else ""


def _after(step: _Part) -> list[int]:
    """The numbers, from 1, of the steps that one waits for."""
    return [place + 1 for place in step.get("after") or ()]


def _left(violation: Violation, plan: PlanRecord) -> Iterator[str]:
    """What the last plan says of the rule, if it could not, or was not to, repair it."""
    for rule in remaining(plan):
        if any(group["id"] in violation.groups for group in rule["groups"]):
            hardness = "hard" if violation.hard else "soft"
            because = rule.get("because") or (f"repair of {hardness} rules is not enabled",)
            yield from (f"plan {plan.id}: {reason}" for reason in because)
