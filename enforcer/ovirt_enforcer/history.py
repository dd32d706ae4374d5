"""What was decided and what came of it: plans about a VM, host or group in lines; why a VM was not moved."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Annotated, Any, NamedTuple

from msgspec.structs import replace

from ovirt_placement.answers.document import fewest_text
from ovirt_placement.answers.question import THE_VM, Reads, question
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.names import counted, group_names, host_name
from ovirt_placement.model.record import Record
from ovirt_placement.rules.catalogue import Violation, find_unjudged, find_violations
from ovirt_placement.store.enforcer.history import HeldStep, PlanRecord, RecordedMigration
from ovirt_placement.store.enforcer.intents import Intent, IntentState
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
    #: What is called so, or was: names change, ids do not.
    ids: frozenset[str] = frozenset()

    def known_by(self, records: Iterable[PlanRecord]) -> "Wanted":
        """With the ids of all that some plan calls so."""
        parts = (part for record in records for part in (*record.steps, *record.remaining))
        named = (one for part in parts for one in _named(part, self.subject))
        return self._replace(ids=frozenset(one["id"] for one in named if self.name == one["name"]))

    def means(self, one: str) -> bool:
        """Whether it is asked about what has this id."""
        return one == self.name or one in self.ids


def about(record: PlanRecord, wanted: Wanted) -> bool:
    """Whether a plan moved, meant to move, or had to leave alone what is called so."""
    return bool(steps_about(record, wanted)) or any(_names(part, wanted) for part in record.remaining)


def steps_about(record: PlanRecord, wanted: Wanted) -> tuple[int, ...]:
    """Numbers of the steps, from 1, that move or repair what is called so, leave it, or lead there."""
    # The engine may have chosen another host.
    hosts = wanted.subject is Subject.HOST
    led = {one.step for one in record.migrations if hosts and wanted.means(one.target)}
    return tuple(
        number
        for number, step in enumerate(record.steps, 1)
        if not wanted.name or number in led or _names(step, wanted)
    )


def selected(
    plans: Iterable[PlanRecord], migrations: Iterable[RecordedMigration], cluster: str | None, wanted: Wanted
) -> tuple[tuple[PlanRecord, ...], tuple[RecordedMigration, ...]]:
    """Plans with the steps, and migrations of unknown plans, which have ids alone, that are wanted."""
    hosts = wanted.subject is Subject.HOST
    ids = ((one, (one.source or "", one.target) if hosts else (one.vm,)) for one in migrations)
    return (
        tuple(
            _narrowed(plan, wanted)
            for plan in plans
            if cluster in (None, plan.cluster, _cluster_name(plan))
            and (not wanted.name or about(plan, wanted))
        ),
        tuple(
            migration
            for migration, named in ids
            if cluster in (None, migration.cluster) and (not wanted.name or any(map(wanted.means, named)))
        ),
    )


def _narrowed(record: PlanRecord, wanted: Wanted) -> PlanRecord:
    if not wanted.name:
        return record
    numbers = steps_about(record, wanted)
    return replace(
        record,
        migrations=tuple(one for one in record.migrations if one.step in numbers),
        held=tuple(one for one in record.held if one.step in numbers),
    )


def user_actions_about(
    actions: Iterable[UserAction], plans: Iterable[PlanRecord], name: str
) -> tuple[UserAction, ...]:
    known = {plan.id for plan in plans}
    return tuple(
        action
        for action in actions
        if name in ("", action.subject, action.cluster, action.cluster_name) or action.plan in known
    )


def _names(part: _Part, wanted: Wanted) -> bool:
    return any(wanted.name == one["name"] or wanted.means(one["id"]) for one in _named(part, wanted.subject))


def _named(part: _Part, subject: Subject) -> list[_Part]:
    if subject is Subject.HOST:
        sources = [vm["from"] for vm in part.get("vms", ()) if "from" in vm]
        return [part["to"], *sources] if "to" in part else sources
    fields = ("vms",) if subject is Subject.VM else ("vms", "groups", "repairs")
    return [one for field in fields for one in part.get(field, ())]


def superseded(records: Iterable[PlanRecord]) -> Mapping[str, str]:
    """Of each plan that was not carried out to its end, the id of the one made next in its cluster."""
    found: dict[str, str] = {}
    latest: dict[str, PlanRecord] = {}
    for record in sorted(records, key=lambda one: (one.updated, one.id)):
        before = latest.get(record.cluster)
        if before is not None:
            taken = {one.step for one in before.migrations}
            if not taken.issuperset(range(1, len(before.steps) + 1)):
                found[before.id] = record.id
        latest[record.cluster] = record
    return found


def plan_texts(
    records: Sequence[PlanRecord], replaced: Mapping[str, str], wanted: Wanted, *, fold: bool
) -> Iterator[tuple[float, str]]:
    """Plans, each with its moment; to `fold` puts superseded ones that came to nothing in a line."""

    def idle(record: PlanRecord) -> bool:
        return fold and record.id in replaced and not record.migrations

    by_cluster = sorted(records, key=lambda one: one.cluster)
    for (_, folded), some in groupby(by_cluster, key=lambda one: (one.cluster, idle(one))):
        run = tuple(some)
        if folded:
            yield run[-1].updated, _folded_text(run, replaced[run[-1].id])
        else:
            yield from ((one.updated, plan_text(one, wanted, replaced.get(one.id))) for one in run)


def plan_text(record: PlanRecord, wanted: Wanted, superseded_by: str | None) -> str:
    """A plan; of its steps those that concern what is called so, if anything is named."""
    lines = [
        f"{moment(record.updated)}  plan {record.id}, cluster {_cluster_name(record)}: {_summary(record)}"
    ]
    if superseded_by is not None:
        lines.append(f"  superseded by plan {superseded_by}")
    for number in steps_about(record, wanted):
        lines += _step_lines(record, number)
    for rule in record.remaining:
        groups, vms = (", ".join(named["name"] for named in rule[field]) for field in ("groups", "vms"))
        lines.append(f"  Not repaired: {groups} ({vms})")
        lines += (f"    - {because}" for because in rule.get("because", ()))
    for one in record.document.get("refused", ()):
        lines.append(f"  Left out: {step_text(one['step'])}: {'; '.join(one['because'])}")
    return "\n".join(lines)


def _folded_text(plans: Sequence[PlanRecord], superseded_by: str) -> str:
    last = plans[-1]
    at, cluster = moment(last.updated), f"cluster {_cluster_name(last)}"
    by = f"superseded by plan {superseded_by}, nothing was migrated"
    if len(plans) == 1:
        return f"{at}  plan {last.id}, {cluster}: {_summary(last)}; {by}"
    return f"{at}  {cluster}: {len(plans)} plans since {moment(plans[0].updated)}, {by} (--all shows them)"


def migration_text(migration: RecordedMigration) -> str:
    """A migration of which no plan is known."""
    title = f"migration of {migration.vm} to {migration.target}"
    return f"{moment(migration.created)}  {title}: {_end_text(migration)}"


def moment(seconds: float) -> str:
    """Seconds since the epoch as the time of day here."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(sep=" ", timespec="seconds")


def step_text(step: Mapping[str, Any]) -> str:
    moves = ", ".join(f"{vm['name']} from {vm['from']['name']}" for vm in step["vms"])
    return f"{moves} to {step['to']['name']}"


def held_text(held: HeldStep) -> str:
    often = "once" if held.times == 1 else f"{held.times} times, last"
    return f"held back {often} at {moment(held.updated)} ({held.gate}): {held.reason}"


def _cluster_name(record: PlanRecord) -> str:
    named: str = record.document.get("cluster", {}).get("name", record.cluster)
    return named


def _summary(record: PlanRecord) -> str:
    document = record.document
    migrations = sum(len(step["vms"]) for step in record.steps)
    if not migrations:
        return "no migrations"
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
    step = record.steps[number - 1]
    reason = step.get("reason")
    yield f"  {number}. {step_text(step)}{f': {reason}' if reason else ''}"
    yield from (f"       {held_text(held)}" for held in record.held if held.step == number)
    hosts = {host["id"]: host["name"] for one in record.steps for host in _named(one, Subject.HOST)}
    names = {vm["id"]: vm["name"] for vm in step["vms"]}
    for migration in record.migrations:
        if migration.step == number:
            whose = f"{names.get(migration.vm, migration.vm)} " if len(names) > 1 else ""
            end, target = _end_text(migration), migration.target
            if migration.state is IntentState.DONE and target != step["to"]["id"]:
                end = f"on {hosts.get(target, target)}, which the engine chose: {end}"
            yield f"       {moment(migration.created)} {whose}{end}"


def _end_text(migration: RecordedMigration) -> str:
    if migration.state is IntentState.DONE:
        end = f"done in {migration.seconds:.0f} s"
    elif migration.state is IntentState.FAILED:
        end = f"failed: {migration.reason}"
    else:
        end = "has not ended" + (f": {migration.reason}" if migration.reason else "")
    rules = () if migration.outcome is None else migration.outcome.rules
    states = [f"{rule.name} is {'satisfied' if rule.holds else 'violated'}" for rule in rules]
    return f"{end}; afterwards {', '.join(states)}" if states else end


@dataclass(frozen=True, slots=True)
class KnownHistory:
    """All that shows why a VM stays where it is."""

    snapshot: Snapshot
    #: VMs and rules that a gate holds for now, with the reason, by id.
    frozen: Mapping[str, str]
    held_groups: Mapping[str, str]
    #: The plans that were made lately, and migrations that ended lately, the oldest first.
    plans: tuple[PlanRecord, ...]
    under_way: tuple[Intent, ...]
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
    #: Why it is not known yet of other rules whether it violates them.
    unknown: tuple[str, ...]


@question(
    "why-not",
    "show why a VM that violates a rule was not moved",
    """\
Show which rules a VM violates, and why each is not repaired yet: a gate, a plan, a failed migration.
""",
    examples="""\
  ovirt-enforcer why-not web1
""",
    text=lambda answer, _: _why_not_lines(answer),
    statuses=(0,),
    reads=Reads.OWN,
    command="ovirt-enforcer",
)
def why_not(known: KnownHistory, vm: Annotated[Vm, THE_VM]) -> WhyNot:
    found = find_violations(known.snapshot, vm.cluster)
    violations = [one for one in found if vm.id in {*one.offenders, *(place.vm for place in one.locations)}]
    plan = next((plan for plan in reversed(known.plans) if plan.cluster == vm.cluster), None)
    return WhyNot(
        vm=vm.name,
        host=None if vm.host is None else host_name(vm.host, known.snapshot),
        because=tuple(_because(vm, known)) if violations else (),
        rules=tuple(
            UnrepairedRule(
                rule=f"{group_names(violation.groups, known.snapshot)}: {violation.constraint.asks}",
                hard=violation.hard,
                offends=vm.id in violation.offenders,
                because=tuple(_why_unrepaired(violation, known, plan)),
            )
            for violation in violations
        ),
        unknown=find_unjudged(known.snapshot, vm.cluster),
    )


def _why_not_lines(answer: WhyNot) -> list[str]:
    where = "runs on no host" if answer.host is None else f"is on {answer.host}"
    unknown = [f"Not known yet: {why}." for why in answer.unknown]
    if not answer.rules:
        judged = " that could be judged" if unknown else ""
        return [f"{answer.vm} {where} and violates no rule{judged}.", *unknown]
    lines = [f"{answer.vm} {where}."]
    for rule in answer.rules:
        hardness = "hard" if rule.hard else "soft"
        stands = f"violates {rule.rule}" if rule.offends else f"is in {rule.rule}, which is violated"
        lines.append(f"It {stands} ({hardness}):")
        lines += (f"  - {reason}" for reason in rule.because)
    if answer.because:
        lines.append("Why it is still there:")
        lines += (f"  - {reason}" for reason in answer.because)
    return [*lines, *unknown]


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
        if intent.vm == vm.id and intent.state is IntentState.FAILED:
            yield f"{moment(intent.updated)} to {host_name(intent.target, known.snapshot)}: {intent.reason}"


def _why_unrepaired(violation: Violation, known: KnownHistory, plan: PlanRecord | None) -> Iterator[str]:
    for group in violation.groups:
        if group in known.held_groups:
            yield known.held_groups[group]
    if plan is None:
        yield "no plan has been made in its cluster lately"
        return
    known_to_plan = (*_planned(violation, plan), *_left(violation, plan))
    yield from known_to_plan or (f"plan {plan.id}, the last one, was made before it broke",)


def _planned(violation: Violation, plan: PlanRecord) -> Iterator[str]:
    for number, step in enumerate(plan.steps, 1):
        if not any(group["id"] in violation.groups for group in step.get("groups", ())):
            continue
        after = " and ".join(map(str, _after(step)))
        waits = f", after step {after}" if after else ""
        yield f"plan {plan.id} has step {number} for it: {step_text(step)}{waits}"
        before = _before(plan, number)
        yield from (
            f"step {held.step}{', which it waits for,' if held.step != number else ''} was {held_text(held)}"
            for held in plan.held
            if held.step == number or held.step in before
        )


def _before(plan: PlanRecord, number: int) -> set[int]:
    """The numbers of all steps that one waits for, be it by way of others."""
    numbers = _after(plan.steps[number - 1])
    return {*numbers}.union(*(_before(plan, one) for one in numbers))


def _after(step: _Part) -> list[int]:
    return [place + 1 for place in step.get("after") or ()]


def _left(violation: Violation, plan: PlanRecord) -> Iterator[str]:
    for rule in plan.remaining:
        if any(group["id"] in violation.groups for group in rule["groups"]):
            hardness = "hard" if violation.hard else "soft"
            because = rule.get("because") or (f"repair of {hardness} rules is not enabled",)
            yield from (f"plan {plan.id}: {reason}" for reason in because)
