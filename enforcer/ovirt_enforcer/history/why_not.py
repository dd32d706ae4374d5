"""Says why a VM that violates a rule has not been moved: what holds it, what is planned, what was refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ovirt_enforcer.history.selecting import remaining, steps
from ovirt_enforcer.history.text import held_text, moment, step_text
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.names import group_name, host_name
from ovirt_placement.model.record import Record
from ovirt_placement.rules.violations import Violation, find_violations
from ovirt_placement.store.history import PlanRecord
from ovirt_placement.store.intents import Intent, IntentState


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
    #: Whether this VM stands wrong, and not only other members.
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
    violations = [
        violation
        for violation in find_violations(known.snapshot, vm.cluster)
        if vm.id in violation.offenders or any(vm.id == place.vm for place in violation.locations)
    ]
    return WhyNot(
        vm=vm.name,
        host=None if vm.host is None else host_name(vm.host, known.snapshot),
        because=tuple(_because(vm, known)) if violations else (),
        rules=tuple(_violated_rule(violation, vm, known) for violation in violations),
    )


def text(answer: WhyNot) -> str:
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
            yield f"its migration to {_host(intent.target, known)} is under way ({intent.state})"
    if vm.id in known.frozen:
        yield known.frozen[vm.id]
    for intent in known.ended:
        if intent.state is IntentState.FAILED:
            yield f"{moment(intent.updated)} to {_host(intent.target, known)}: {intent.reason}"


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
    yield from planned
    left = tuple(_left(violation, known.plan))
    yield from left
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
    numbers = set(_after(steps(plan)[number - 1]))
    return numbers.union(*(_before(plan, one) for one in numbers))


def _waits(step: Mapping[str, object]) -> str:
    numbers = map(str, _after(step))
    after = " and ".join(numbers)
    return f", after step {after}" if after else ""


def _after(step: Mapping[str, object]) -> list[int]:
    """The numbers, from 1, of the steps that one waits for."""
    after = step.get("after")
    return [place + 1 for place in after] if isinstance(after, list) else []


def _left(violation: Violation, plan: PlanRecord) -> Iterator[str]:
    """What the last plan says of the rule, if it could not, or was not to, repair it."""
    for rule in remaining(plan):
        if any(group["id"] in violation.groups for group in rule["groups"]):
            hardness = "hard" if violation.hard else "soft"
            because = rule.get("because") or (f"nobody asked for the repair of {hardness} rules",)
            yield from (f"plan {plan.id}: {reason}" for reason in because)


def _host(host: str, known: KnownHistory) -> str:
    return host_name(host, known.snapshot)
