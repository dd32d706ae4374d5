"""What can be said of hosts that fail together: survived, lost or not known; judged one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from ovirt_placement.model.record import Record
from ovirt_placement.rules.solving.problem import Budget, BudgetSpentError


class Survival(Record, frozen=True):
    """Hosts that may fail together, and where each highly available VM on them would restart.

    The VMs stand in the order of the starts.
    """

    hosts: tuple[str, ...]
    homes: dict[str, str]
    #: The failure domains that fail, where domains do.
    domains: tuple[str, ...] = ()


class Loss(Record, frozen=True):
    """Hosts that must not fail together, and VMs that a best effort leaves without a home."""

    hosts: tuple[str, ...]
    unplaced: tuple[str, ...]
    domains: tuple[str, ...] = ()
    #: Where those start that can while the others are left out, in order; nothing where no order was tried.
    homes: dict[str, str] = {}
    #: Where the order alone is to blame: another one, in which each VM has a home.
    otherwise: dict[str, str] = {}


class Unknown(Record, frozen=True):
    """Hosts for which the work budget ended before an answer."""

    hosts: tuple[str, ...]
    domains: tuple[str, ...] = ()


Outcome = Survival | Loss | Unknown


class Size(Record, frozen=True):
    """What is proven about all sets of this many hosts, or domains."""

    size: int
    #: How many are proven to be survived.
    survived: int
    #: How many the budget left unjudged. All others are reported, or contain one that is lost.
    unjudged: int


class Tight(Record, frozen=True):
    """Hosts that were singled out since their failure leaves the least room, and what came of it."""

    hosts: tuple[str, ...]
    #: For how many more VMs of this size there is room then at most; below 0 there is too little.
    room_for: int
    memory_mb: int
    #: None where the budget ended before an answer.
    survived: bool | None
    domains: tuple[str, ...] = ()


class Proven(Record, frozen=True):
    """What is proven, by one measure, about the failure of this many hosts of a cluster at once."""

    #: Whether every such failure is survived; None if that is not known.
    safe: bool | None
    #: The smallest sets of hosts whose failure is not survived.
    losses: tuple[Loss, ...]
    #: Sets that were too hard.
    unknown: tuple[Unknown, ...]
    #: How many sets are proven to be survived; at least this many where millions of sets contain lost ones.
    survived: int
    #: How many sets the budget left unjudged.
    unjudged: int
    #: Where everything goes when one host fails, or one domain, for each whose failure is survived.
    survivals: tuple[Survival, ...]
    #: The same counts by the size of the sets.
    sizes: tuple[Size, ...] = ()
    #: The worst sets that were looked for where not all could be judged.
    tightest: tuple[Tight, ...] = ()


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
