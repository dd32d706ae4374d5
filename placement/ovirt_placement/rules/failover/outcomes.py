"""What can be said of hosts that fail together, and which highly available VMs would be lost with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.elements.assignment import Budget, BudgetSpentError
from ovirt_placement.rules.elements.placement import LEAVABLE


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


#: Stands for the host of VMs that are lost and on no host that is known.
NOWHERE: Final = ""


class Outside(Record, frozen=True):
    """A VM that is down, as its user or administrator wants it: no failure concerns it."""

    vm: str
    #: The REST API's words.
    status: str


class Lost(Record, frozen=True):
    """A VM that crashed, is unknown, or is on a host that does not answer: lost until it runs again."""

    vm: str
    #: The REST API's words.
    status: str
    #: The host that it was on, and that host's status; None where neither is known.
    host: str | None = None
    host_status: str | None = None
    #: Where it could be started now, together with all others that are lost; None where no host takes it, or
    #: where that is not known.
    home: str | None = None
    #: Whether the budget ended before that was known.
    unjudged: bool = False


def protected(snapshot: Snapshot, hosts: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Highly available VMs by the host that they would be lost with."""
    return {host: tuple(vm.id for vm in snapshot.vms_of_host.get(host, ()) if vm.ha) for host in hosts}


def find_lost(snapshot: Snapshot, cluster_id: str) -> tuple[Lost, ...]:
    """Highly available VMs of a cluster that do not run, though nobody has stopped them."""
    vms = (vm for vm in snapshot.vms if vm.cluster == cluster_id and vm.ha)
    return tuple(_lost(snapshot, vm) for vm in vms if is_lost(snapshot, vm))


def is_lost(snapshot: Snapshot, vm: Vm) -> bool:
    """Whether a VM crashed, is unknown, or stands on a host that does not answer."""
    host = snapshot.host_by_id.get(vm.host or "")
    return vm.crashed or vm.status == "unknown" or (host is not None and host.status not in LEAVABLE)


def find_outside(snapshot: Snapshot, cluster_id: str) -> Iterator[Outside]:
    """Highly available VMs of a cluster that run nowhere, and are not lost."""
    for vm in snapshot.vms:
        if vm.cluster == cluster_id and vm.ha and vm.host is None and not is_lost(snapshot, vm):
            yield Outside(vm.id, vm.status)


def _lost(snapshot: Snapshot, vm: Vm) -> Lost:
    host = snapshot.host_by_id.get(vm.host or "")
    return Lost(vm.id, vm.status) if host is None else Lost(vm.id, vm.status, host.id, host.status)
