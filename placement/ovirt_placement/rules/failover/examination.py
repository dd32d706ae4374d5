"""Judges failures one by one: here, or wherever else their tasks are carried to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from ovirt_placement.model.record import Record
from ovirt_placement.rules.failover.outcomes import Outcome, Survival, Unknown
from ovirt_placement.rules.solving.budget import Budget, BudgetSpentError


class Measure(Protocol):
    """What a failure is judged by."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts that may fail."""
        ...

    @property
    def separable(self) -> bool:
        """Whether starts on different hosts have nothing to do with each other, but for affinity."""
        ...

    def vms_on(self, failed: tuple[str, ...]) -> tuple[str, ...]:
        """The VMs that would restart."""
        ...

    def judge(self, failed: tuple[str, ...], budget: Budget) -> Outcome:
        """Judge one failure. Raises `BudgetSpentError`."""
        ...

    def combine(self, failed: tuple[str, ...], survivals: Sequence[Survival]) -> Survival | None:
        """Survive by what is known of smaller failures that make up this one; None if that does not do."""
        ...


class ExaminationTask(Record, frozen=True):
    """Hosts that fail together, and survivals of smaller failures to begin with, if there are any."""

    failed: tuple[str, ...]
    survivals: tuple[Survival, ...] = ()


class Examined(Record, frozen=True):
    """What came of a task, and the steps that it took."""

    outcome: Outcome
    steps: int


#: Examines tasks and reports each, in their order: the caller may stop listening at any time.
Examiner = Callable[[Iterable[ExaminationTask]], Iterator[Examined]]


def examine(measure: Measure, task: ExaminationTask, steps: int) -> Examined:
    """Judge one failure in about this many steps: one, one for each VM to place, and those of a search.

    What takes more ends as unknown.
    """
    budget = Budget(steps)
    try:
        budget.spend(1 + len(measure.vms_on(task.failed)))
        found = measure.combine(task.failed, task.survivals) if task.survivals else None
        outcome = found or measure.judge(task.failed, budget)
    except BudgetSpentError:
        outcome = Unknown(task.failed)
    return Examined(outcome, steps - budget.left)


def one_by_one(measure: Measure, steps: int) -> Examiner:
    """Examine in this process, each task when it is asked for."""
    return lambda tasks: (examine(measure, task, steps) for task in tasks)
