"""How a plan would go, step by step: when, on which hosts, what waits for what, and where it leads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ovirt_placement.answers.plans.obstacles import misfit_text
from ovirt_placement.answers.plans.reading import NoPlan, plan_of, steps_of
from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record
from ovirt_placement.planning.fitting import misfit
from ovirt_placement.planning.ordering.schedule import ScheduleLimits, schedule
from ovirt_placement.planning.verification import apply

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
