"""What to read of the engine, and when: single objects after an event, all of a kind at its interval.

Pure, given what happened, what was read, and the time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto

from ovirt_placement.config import InventorySettings
from ovirt_placement.inventory.on_demand import Demands
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


#: Decisions come in bursts: so long after one that asked for something newer, more are expected.
BURST_SECONDS = 10.0


#: What is published is renewed when it has reached this share of the age that a decision goes by.
_SHARE = 0.8
#: One part of the time in this many is spent on it at most.
_BUSY_SHARE = 2


class ReconciliationPace:
    """Pure, given when decisions are made; who asks for something newer is answered at once."""

    def __init__(self, interval: float, max_age: float) -> None:
        """`interval` is the time between two questions to the engine at rest.

        In a burst it is asked so often that a decision, which goes by nothing older than `max_age`, need not
        wait for it.
        """
        self._interval = interval
        self._burst_interval = min(interval, _SHARE * max_age)
        self._took = 0.0
        self._asked_at = float("-inf")

    def asked(self, now: float) -> None:
        """Take note of a decision, or of a reader that asks for a newer snapshot; from any thread."""
        self._asked_at = now

    def published(self, seconds: float) -> None:
        """Take note of how long after a question to the engine the version with its answer was there."""
        self._took = max(seconds, (self._took + seconds) / 2)

    def interval(self, now: float) -> float:
        """Say how long after the last question to the engine the next one is due.

        In a burst so long before it is needed as the version before took: else decisions wait for it.
        """
        if now >= self._asked_at + BURST_SECONDS:
            return self._interval
        return min(self._burst_interval, max(self._burst_interval - self._took, _BUSY_SHARE * self._took))


class ReconciliationScope(Enum):
    """How much one larger reading takes in."""

    WHOLE = auto()
    HOSTS = auto()  # memory and CPU, which no event reports
    STATISTICS = auto()
    DETAILS = auto()  # disks, network interfaces and owners of VMs
    SEARCHES = auto()  # who the searches of placement rules find


_NEVER = float("-inf")
#: How long to wait for the first demand before looking again.
_IDLE_SECONDS = 60.0


@dataclass
class Required:
    """Since when a larger reading must have begun, and when the last one did."""

    #: Something has changed since, or other things are wanted; minus infinity before anything is.
    since: float = _NEVER
    #: Since when more is wanted: what was read before lacks that.
    more_since: float = _NEVER
    read_at: float = _NEVER

    def want_more(self, now: float) -> None:
        """Have it read again, for more than before."""
        self.since = self.more_since = now

    def record_reading(self, began: float, now: float, *, complete: bool) -> None:
        """Take note of a reading; one that lacks what is wanted by now is made again."""
        if complete:
            self.read_at = max(self.read_at, began)
        else:
            self.since = now

    @property
    def complete_at(self) -> float:
        """When all that is wanted was read."""
        return self.read_at if self.read_at >= self.more_since else _NEVER


class Reconciliation:
    """Larger readings, each at its own interval; the first of them must be required, and sooner if it is."""

    def __init__(
        self, settings: InventorySettings, *scopes: ReconciliationScope, patience: float = 1.0
    ) -> None:
        """Name the scopes that are read one after another, the most needed first.

        Statistics cost the engine the most: `patience` times as long as usual they wait for a reader.
        """
        intervals = {
            ReconciliationScope.WHOLE: settings.vms_interval_seconds,
            ReconciliationScope.HOSTS: settings.hosts_interval_seconds,
            ReconciliationScope.STATISTICS: settings.statistics_interval_seconds,
            ReconciliationScope.DETAILS: settings.details_interval_seconds,
            ReconciliationScope.SEARCHES: settings.vms_interval_seconds,
        }
        self._intervals = {scope: intervals[scope] for scope in scopes}
        self._first = scopes[0]
        self._patience = patience
        #: When the last successful reading of each scope began, and since when one must have begun.
        self._began = dict.fromkeys(scopes, _NEVER)
        self._required = dict.fromkeys(scopes, _NEVER)
        self._asked_at = _NEVER

    def asked(self, now: float) -> None:
        """Take note of a reader that asks for a newer snapshot: what waited for one is due."""
        self._asked_at = now

    def require(self, since: Mapping[ReconciliationScope, float]) -> bool:
        """Have what is read here read since these moments; whether that is more than was asked for."""
        more = {scope: at for scope, at in since.items() if at > self._required.get(scope, at)}
        self._required |= more
        return bool(more)

    def next_reading(self, now: float, needs: Demands) -> ReconciliationScope | None:
        """Say what to read now; nothing before the first demand."""
        return next((scope for scope, moment in self._due(needs).items() if moment <= now), None)

    def done(self, scope: ReconciliationScope, began: float) -> None:
        """Take note of a reading that was successful; its interval counts from its beginning."""
        self._began[scope] = began
        if scope is ReconciliationScope.WHOLE:
            self._began[ReconciliationScope.HOSTS] = began

    def pause(self, now: float, needs: Demands) -> float:
        """Say for how many seconds nothing is due unless it is demanded."""
        return max(0.0, min(self._due(needs).values(), default=now + _IDLE_SECONDS) - now)

    def _due(self, needs: Demands) -> dict[ReconciliationScope, float]:
        """When each scope is due that is needed."""
        scopes = [scope for scope in self._began if _needed(scope, needs)]
        if self._began[self._first] == _NEVER:
            is_required = self._required[self._first] > _NEVER
            scopes = [self._first] if self._first in scopes and is_required else []
        return {scope: self._due_at(scope, self._began[scope]) for scope in scopes}

    def _due_at(self, scope: ReconciliationScope, began: float) -> float:
        if began < self._required[scope]:
            return _NEVER
        waits = scope is ReconciliationScope.STATISTICS and self._asked_at < began
        return began + self._intervals[scope] * (self._patience if waits else 1.0)


def _needed(scope: ReconciliationScope, needs: Demands) -> bool:
    """Whether there is anything to read; of the topology always."""
    asked_for = {
        ReconciliationScope.STATISTICS: needs.statistics,
        ReconciliationScope.SEARCHES: needs.searches,
        ReconciliationScope.DETAILS: needs.details,
    }
    return bool(asked_for.get(scope, True))
