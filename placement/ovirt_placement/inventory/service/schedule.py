"""What to read of the engine, and when: single objects after an event, all of a kind at its interval.

Pure, given what happened, what was read, and the time.
"""

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ovirt_placement.config import InventorySettings
from ovirt_placement.inventory.on_demand import Demands
from ovirt_placement.model import Host, Vm

#: An event can be logged before the state that it speaks of is saved, so it is read again after this
#: time, whatever it showed at first, ...
SOON_SECONDS = 1.0
#: ... and after this time, if the effect is not known or has not shown by then.
LATER_SECONDS = 5.0

_NEVER = float("-inf")


class SubjectKind(StrEnum):
    VM = "VM"
    HOST = "host"
    MEMORY = "memory"  # of a host: what VMs that come and go leave free
    CLUSTER = "cluster"  # with its affinity groups
    LABELS = "labels"  # all of them
    POLICIES = "policies"  # all scheduling policies
    NETWORKS = "networks"  # all of them, with their vNIC profiles


class Subject(NamedTuple):
    """What an event speaks of, as far as it can be read by itself."""

    kind: SubjectKind
    id: str = ""


#: What is read of a subject: None if it is gone. Only VMs and hosts have effects that can be recognised.
Found = Vm | Host | None
#: Whether what was read shows what the event reported.
Effect = Callable[[Found], bool]


def memory_hosts(vm: Vm | None) -> set[str | None]:
    """Where a VM takes up memory, as far as that is known: of these hosts it changes as it moves."""
    return set() if vm is None else {vm.host, vm.migrating_to}


ONCE = (0.0,)
#: For what changes along, as the free memory of the host of a VM, or shows by its effect.
BRIEFLY = (0.0, SOON_SECONDS)
THOROUGHLY = (0.0, SOON_SECONDS, LATER_SECONDS)


@dataclass
class _Plan:
    #: Moments at which it must be read; a later reading serves as well.
    moments: list[float] = field(default_factory=list)
    #: Effects that have not shown yet, each with the moment at which it is given up.
    awaited: list[tuple[Effect, float]] = field(default_factory=list)


class Rereads:
    """The subjects to read again.

    A state that is saved within `SOON_SECONDS` after its event is always found, and one that takes up to
    `LATER_SECONDS` unless an older state looked the same.
    """

    def __init__(self) -> None:
        self._plans: dict[Subject, _Plan] = {}

    def ask(self, subject: Subject, now: float, after: Sequence[float] = THOROUGHLY) -> None:
        """Read a subject again after this many seconds each."""
        plan = self._plans.setdefault(subject, _Plan())
        plan.moments.extend(now + seconds for seconds in after)

    def ask_for_hosts(self, hosts: Iterable[str | None], now: float) -> None:
        """Read hosts again whose free memory changes with a VM that comes or goes; None is no host."""
        for host in hosts:
            if host is not None:
                self.ask(Subject(SubjectKind.MEMORY, host), now, BRIEFLY)

    def await_effect(self, subject: Subject, effect: Effect, now: float) -> None:
        """Read a subject again and again until it shows an effect, and in any case soon."""
        self.ask(subject, now, BRIEFLY)
        self._plans[subject].awaited.append((effect, now + LATER_SECONDS))

    def due(self, now: float, ahead: float = 0.0) -> tuple[Subject, ...]:
        """Name what must be read now, and what must be read again within this many seconds."""
        return tuple(
            subject
            for subject, plan in self._plans.items()
            if plan.awaited or any(moment <= now + ahead for moment in plan.moments)
        )

    def read(self, subject: Subject, found: Found, began: float) -> None:
        """Take note of a reading that began at this moment."""
        if (plan := self._plans.pop(subject, None)) is None:
            return
        plan.moments = [moment for moment in plan.moments if moment > began]
        plan.awaited = [
            (effect, until) for effect, until in plan.awaited if until > began and not effect(found)
        ]
        if plan.moments or plan.awaited:
            self._plans[subject] = plan


#: This many are looked for at once, by one search; the others with the next.
MOST_AT_ONCE = 80
#: A VM that the engine did not have is not looked for again so soon.
REMEMBERED_SECONDS = 2.0
#: More than this many wait for their turn without success: they are made up.
_MOST_WAITING = 1_000
#: What the engine's ids, and those of a state file, are made of. Anything else would mean more in a search.
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")


class UnknownVms:
    """VMs that readers ask for and that are not known: who is to be looked for, and when who was.

    One thread may want some while another looks for them.
    """

    def __init__(self) -> None:
        self._wanted: dict[str, None] = {}
        #: Those that were looked for, of whom nothing is published yet.
        self._sought: frozenset[str] = frozenset()
        self._looked: Mapping[str, float] = {}

    def want(self, vm: str) -> None:
        """Have a VM looked for that is not known."""
        if vm not in self._sought:
            self._wanted[vm] = None

    def wanted(self, under_way: Container[str] = ()) -> tuple[str, ...]:
        """Who is to be looked for now, the longest wanted first."""
        return tuple([vm for vm in tuple(self._wanted) if vm not in under_way][:MOST_AT_ONCE])

    def found(self, vms: Iterable[str]) -> None:
        """Take note that these were looked for, whether or not the engine has them."""
        self._sought |= frozenset(vms)
        for vm in self._sought:
            self._wanted.pop(vm, None)

    def published(self, now: float) -> None:
        """Remember that what was found of all that were looked for is published."""
        recent = {vm: at for vm, at in self._looked.items() if at > now - REMEMBERED_SECONDS}
        self._looked = recent | dict.fromkeys(self._sought, now)
        self._sought = frozenset()

    def is_known(self, vm: str, not_before: float) -> bool:
        """Whether the VM was looked for at about this moment, or is none to look for."""
        if _ID.fullmatch(vm) is None or len(self._wanted) >= _MOST_WAITING:
            return True
        return self._looked.get(vm, _NEVER) > not_before - REMEMBERED_SECONDS


#: Decisions come in bursts: so long after one that asked for something newer, more are expected.
BURST_SECONDS = 10.0
#: What is published is renewed when it has reached this share of the age that a decision goes by.
_SHARE = 0.8
#: One part of the time in this many is spent on it at most.
_BUSY_SHARE = 2


def seconds_between_turns(settings: InventorySettings, seconds_read: float, asked_ago: float) -> float:
    """For how long after a question to the engine about news the next one is not due.

    Who asks for something newer, or decides, begins a burst, in which no decision is to wait for a turn: each
    begins so long before it is needed as the version before `took`.
    """
    if asked_ago >= BURST_SECONDS:
        return settings.interval_seconds
    longest = min(settings.interval_seconds, _SHARE * settings.max_age_seconds)
    return min(longest, max(longest - seconds_read, _BUSY_SHARE * seconds_read))


class ReconciliationScope(StrEnum):
    """How much one larger reading takes in; what only some need, `Demands` has by these names, too."""

    WHOLE = "whole"
    HOSTS = "hosts"  # memory and CPU, which no event reports
    STATISTICS = "statistics"
    DETAILS = "details"  # disks, network interfaces and owners of VMs
    SEARCHES = "searches"  # who the searches of placement rules find


@dataclass
class Reconciliation:
    """The larger readings of one scope: none before the first demand, then at an interval, or sooner."""

    interval: float
    #: While no reader asks, this many intervals: statistics cost the engine the most.
    patience: float = 1.0
    #: Called, in any thread, when the next one is due at once.
    wake: Callable[[], None] = lambda: None
    #: Since when the next one must have begun, for something has changed; minus infinity before anything has.
    since: float = _NEVER
    #: Since when it must have begun for a reader who relies on no events.
    asked_since: float = _NEVER
    #: When a reader last asked for anything newer.
    asked_at: float = _NEVER
    #: When the last one began that was successful, and the last that has brought all that is wanted by now.
    began: float = _NEVER
    read_at: float = _NEVER

    def require(self, now: float, *, more: bool = False) -> None:
        """Have it read again; with `more` than before, what was read lacks that."""
        self.since = now
        if more:
            self.read_at = _NEVER
        self.wake()

    def note_answer(self, began: float, now: float, *, complete: bool) -> None:
        """Take note of an answer; one that lacks what is wanted by now is asked for again."""
        if complete:
            self.read_at = max(self.read_at, began)
        else:
            self.require(now)

    @property
    def due_at(self) -> float:
        if self.began < max(self.since, self.asked_since):
            return _NEVER
        if self.began == _NEVER:
            return -_NEVER
        return self.began + self.interval * (1.0 if self.asked_at >= self.began else self.patience)


#: For this many intervals statistics wait for a reader.
_PATIENCE = 5.0

Reconciliations = Mapping[ReconciliationScope, Reconciliation]


def reconciliations(settings: InventorySettings) -> Reconciliations:
    """Those of each scope, the most needed first."""
    return {
        ReconciliationScope.WHOLE: Reconciliation(settings.vms_interval_seconds),
        ReconciliationScope.HOSTS: Reconciliation(settings.hosts_interval_seconds),
        ReconciliationScope.STATISTICS: Reconciliation(settings.statistics_interval_seconds, _PATIENCE),
        ReconciliationScope.DETAILS: Reconciliation(settings.details_interval_seconds),
        ReconciliationScope.SEARCHES: Reconciliation(settings.vms_interval_seconds),
    }


def next_reading(
    among: Reconciliations, needs: Demands, now: float
) -> tuple[ReconciliationScope | None, float]:
    """What is to be read of these now, the most needed first, and for how many seconds nothing is due."""
    due = {scope: one.due_at for scope, one in among.items() if getattr(needs, scope, True)}
    scope = next((scope for scope, at in due.items() if at <= now), None)
    return scope, max(0.0, min(due.values(), default=-_NEVER) - now)
