"""What to read again and when, after an event: pure, given what happened, what was read, and the time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ovirt_placement.model import Host, Vm

#: An event can be logged before the state that it speaks of is saved, so it is read again after this
#: time, whatever it showed at first, ...
SOON_SECONDS = 1.0
#: ... and after this time, if the effect is not known or has not shown by then.
LATER_SECONDS = 5.0


class SubjectKind(StrEnum):
    VM = "VM"
    HOST = "host"
    MEMORY = "memory"  # of a host: what VMs that come and go leave free
    CLUSTER = "cluster"  # with its affinity groups
    LABELS = "labels"  # all of them
    POLICIES = "policies"  # all scheduling policies
    NETWORKS = "networks"  # all of them, with their vNIC profiles


@dataclass(frozen=True)
class Subject:
    """What an event speaks of, as far as it can be read by itself."""

    kind: SubjectKind
    id: str = ""


#: What is read of a subject: None if it is gone. Only VMs and hosts have effects that can be recognised.
Found = Vm | Host | None
#: Whether what was read shows what the event reported.
Effect = Callable[[Found], bool]

ONCE = (0.0,)
#: For what changes along, as the free memory of the host of a VM.
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
        plan = self._plans.get(subject)
        if plan is None:
            return
        plan.moments = [moment for moment in plan.moments if moment > began]
        plan.awaited = [
            (effect, until) for effect, until in plan.awaited if until > began and not effect(found)
        ]
        if not plan.moments and not plan.awaited:
            del self._plans[subject]


def places(vm: Vm | None) -> set[str | None]:
    """Where a VM takes up memory, as far as that is known: of these hosts it changes as it moves."""
    return set() if vm is None else {vm.host, vm.migrating_to}
