"""Plans read back from what `ovirt-enforcer plan --json` has printed: when each step runs, where it leads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ovirt_placement.answers.plans.plan import misfit_text
from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.planning.ordering.schedule import ScheduleLimits, schedule
from ovirt_placement.planning.plan import Plan, Remaining, Step
from ovirt_placement.planning.verification import apply, misfit
from ovirt_service.errors import UserError


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
            remaining=tuple(map(_remaining, document["remaining"])),
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


def _remaining(document: Mapping[str, Any]) -> Remaining:
    return Remaining(
        groups=_ids(document["groups"]),
        family=document["family"],
        asks=document["asks"],
        hard=document["hard"],
        vms=_ids(document["vms"]),
        obstacles=(),  # they were of another time
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
    times = schedule(steps_of(steps), ScheduleLimits())
    return tuple(
        TimedStep(number, begins, ends)
        for number, (begins, ends) in enumerate(zip(times.starts, times.ends, strict=True), 1)
    )


def waiting_on(steps: Sequence[Document], numbers: Collection[int]) -> tuple[int, ...]:
    """The numbers of the steps that wait for any of these, directly or through others."""
    found = set(numbers)
    for number, step in enumerate(steps, 1):  # a step waits for earlier ones alone
        if any(at + 1 in found for at in step.get("after", ())):
            found.add(number)
    return tuple(sorted(found.difference(numbers)))


def leads_to(snapshot: Snapshot, plan: Document, done: Collection[int] = ()) -> Snapshot | str:
    """The state that the rest of a plan leads to; why it does not fit the state any more, where that is so.

    The steps with the numbers in `done` have been carried out.
    """
    try:
        made = plan_of(plan)
    except NoPlan as error:
        return str(error)
    ahead = tuple(step for number, step in enumerate(made.steps, 1) if number not in done)
    why = misfit(snapshot, replace(made, steps=ahead))
    if why is not None:
        return misfit_text(why, snapshot)
    for step in ahead:
        snapshot = apply(snapshot, step)
    return snapshot
