"""Plans as an administrator reads them, and read back from what was printed of them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ovirt_placement.answers.document import failing_text, fewest_text, none_text
from ovirt_placement.answers.plans import (
    ClusterPlan,
    DroppedStep,
    LostFailure,
    PlannedReservation,
    PlannedStep,
    RemainingRule,
    misfit_text,
)
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import NamedGroup, counted, names_of
from ovirt_placement.model.record import Record
from ovirt_placement.planning.maintenance.site import Leaving
from ovirt_placement.planning.plan import Plan, Remaining, Step
from ovirt_placement.planning.requests import STRATEGY as UNDO
from ovirt_placement.planning.requests import Home
from ovirt_placement.planning.steps import end_of, misfit, schedule
from ovirt_service.errors import UserError

# -- Plans as an administrator reads them.
#: This many failures that are not survived are reported in words; data have them all.
_MOST_FAILURES = 10


def text(plan: ClusterPlan) -> str:
    return "\n".join(plan_lines(plan))


def plan_lines(plan: ClusterPlan) -> list[str]:
    """What a plan comes to, each step with its reason, what is not repaired and why."""
    lines = [f"Cluster {plan.cluster.name}: {_summary(plan)}", *steps_text(plan.steps)]
    if plan.not_now is not None:
        lines.append(f"  Not now: {plan.not_now}")
    if plan.crowded:
        reserves = any(step.reserves for step in plan.steps)
        needs_it = f"a hard rule {'or the HA reservation ' if reserves else ''}needs it"
        lines.append(f"  Takes of the headroom of {names_of(plan.crowded)}: {needs_it}")
    for cost in plan.costs:
        lost = f"  If {_failing(cost)} failed afterwards, {names_of(cost.vms)} would not restart:"
        lines.append(f"{lost} the rules that are repaired leave no other host")
    for rule in plan.remaining:
        lines.append(f"  Not repaired: {rule_text(rule)} ({names_of(rule.vms)})")
        lines += (f"    - {reason}" for reason in rule.because)
    if plan.reservation is not None:
        lines += (f"  {line}" for line in reservation_text(plan.reservation))
    return lines


def steps_text(steps: Iterable[PlannedStep]) -> Iterator[str]:
    """The steps, numbered from 1, with those that each waits for."""
    for number, step in enumerate(steps, 1):
        yield f"  {number}. {step_text(step)}{after_text(step.after)}"


def step_text(step: PlannedStep) -> str:
    moves = ((vm.name, vm.from_.name) for vm in step.vms)
    return migration_text(moves, step.to.name, step.reason, closure=step.closure)


def migration_text(moves: Iterable[tuple[str, str]], to: str, reason: str, *, closure: bool) -> str:
    """VMs with the hosts that they leave, the host that they go to, and what for."""
    names = ", ".join(f"{vm} from {source}" for vm, source in moves)
    together = " (at once, as one group)" if closure else ""
    return f"{names} to {to}{together}: {reason}"


def dropped_text(dropped: DroppedStep) -> str:
    because = "; ".join(dropped.because) or "the rules refuse it"
    return f"dropped from the plan: {step_text(dropped.step)}: {because}"


def rule_text(rule: RemainingRule) -> str:
    if rule.family in (Leaving.family, Home.family):
        return f"maintenance: {rule.asks}"
    return f"{title(rule.groups)}, {'hard' if rule.hard else 'soft'}: {rule.asks}"


def title(groups: Iterable[NamedGroup]) -> str:
    """Which rule it is: its affinity groups and legacy labels; a rule without any is of placement keys."""
    return " and ".join(group.title for group in groups) or "placement keys"


def reservation_text(reservation: PlannedReservation) -> Iterator[str]:
    """What highly available VMs do not survive even then; nothing, where they survive all."""
    if reservation.holds is None:
        yield "It is not known whether the HA reservation is satisfied: not all failures could be judged"
    if reservation.lost:
        untried = "no migrations that restore it were found; not all could be tried"
        none = none_text(reservation.proven, "legal migrations restore it", untried)
        yield f"The HA reservation is not restored: {reservation.waits or none}"
    for failure in reservation.lost[:_MOST_FAILURES]:
        yield f"  - if {_failing(failure)} failed, no home would be left for {names_of(failure.vms)}"
    if more := len(reservation.lost[_MOST_FAILURES:]):
        yield f"  - and {more} more failures"


def _summary(plan: ClusterPlan) -> str:
    if not plan.steps and not plan.remaining:
        if plan.proven and plan.reservation is not None and plan.reservation.lost:
            return "every affinity rule is satisfied, but the HA reservation is not."
        return "every rule is satisfied." if plan.proven else "nothing is planned."
    if not plan.steps:
        none_found = "no repair of the violated rules was found"
        return f"{none_text(plan.proven, 'migration repairs the violated rules', none_found)}."
    count = counted(plan.migrations, "migration")
    if plan.strategy == UNDO:
        return f"{count} to undo an earlier plan."
    if plan.proven:
        all_of_them = fewest_text(plan.proven, " that repair all that can be repaired")
        return f"{count}, {all_of_them} ({_strategy(plan)}; proven)."
    needed = f"; at least {plan.at_least}" if plan.at_least else ""
    return f"{count} ({_strategy(plan)}: a shorter plan may exist{needed})."


def _strategy(plan: ClusterPlan) -> str:
    return plan.strategy if plan.seed is None else f"{plan.strategy}, seed {plan.seed}"


def _failing(failure: LostFailure) -> str:
    return failing_text(failure.domains, [host.name for host in failure.hosts])


def after_text(after: Iterable[int]) -> str:
    """The steps that one waits for, by their numbers from 1."""
    numbers = ", ".join(str(place + 1) for place in after)
    return f" (after {numbers})" if numbers else ""


# -- Reads plans back from what `ovirt-enforcer plan --json` has printed.
class NoPlan(UserError):
    """A document is not of a plan, or not as it was printed; the text says in which way."""


def plan_of(document: Mapping[str, Any]) -> Plan:
    """The plan of one cluster. Raises `NoPlan`, also if its steps were changed since it was printed."""
    try:
        plan = Plan(
            cluster=document["cluster"]["id"],
            strategy=document["strategy"],
            seed=document["seed"],
            steps=tuple(map(_step, document["steps"])),
            remaining=tuple(
                Remaining(
                    groups=_ids(one["groups"]),
                    family=one["family"],
                    asks=one["asks"],
                    hard=one["hard"],
                    vms=_ids(one["vms"]),
                    obstacles=(),  # they were of another time
                )
                for one in document["remaining"]
            ),
        )
        written = document["id"]
    except (KeyError, TypeError, IndexError) as error:
        raise NoPlan(f"it is not a plan as `ovirt-enforcer plan --json` prints it: {error!r}") from None
    if plan.id != written:
        raise NoPlan(f"plan {written}: its steps are not those that it was printed with")
    return plan


def steps_of(documents: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    """The steps of a plan, as they are written down. Raises `NoPlan`."""
    try:
        return tuple(map(_step, documents))
    except (KeyError, TypeError, IndexError) as error:
        raise NoPlan(f"these are not the steps of a plan: {error!r}") from None


def _step(document: Mapping[str, Any]) -> Step:
    return Step(
        vms=tuple(vm["id"] for vm in document["vms"]),
        sources=tuple(vm["from"]["id"] for vm in document["vms"]),
        target=document["to"]["id"],
        groups=_ids(document["groups"]),
        repairs=_ids(document["repairs"]),
        after=tuple(document["after"]),
        seconds=document["seconds"],
        reserves=document["reserves"],
    )


def _ids(documents: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(one["id"] for one in documents)


# -- How a plan would go, step by step: when, on which hosts, what waits for what, and where it leads.
#: A step, or a plan, as its document has it.
Document = Mapping[str, Any]


class TimedStep(Record, frozen=True):
    """When a step would run, in seconds from the beginning of the plan."""

    #: From 1.
    number: int
    begins: float
    ends: float


def timed(steps: Sequence[Document]) -> tuple[TimedStep, ...]:
    """When each step would run, with two migrations from and to each host at once. Raises `NoPlan`."""
    spans = schedule(steps_of(steps))
    return tuple(TimedStep(number, begins, ends) for number, (begins, ends) in enumerate(spans, 1))


def waiting_on(steps: Sequence[Document], numbers: Collection[int]) -> tuple[int, ...]:
    """The numbers of the steps that wait for any of these, directly or through others."""
    found = set(numbers)
    for number, step in enumerate(steps, 1):  # a step waits for earlier ones alone
        if any(at + 1 in found for at in step.get("after", ())):
            found.add(number)
    return tuple(sorted(found.difference(numbers)))


def leads_to(snapshot: Snapshot, plan: Document, done: Collection[int] = ()) -> Snapshot | str:
    """The state that a plan leads to without the steps `done`, or why it does not fit any more."""
    try:
        made = plan_of(plan)
    except NoPlan as error:
        return str(error)
    ahead = tuple(step for number, step in enumerate(made.steps, 1) if number not in done)
    why = misfit(snapshot, replace(made, steps=ahead))
    return end_of(snapshot, ahead) if why is None else misfit_text(why, snapshot)
