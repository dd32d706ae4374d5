"""Why a VM did not start, or went where it went, at some moment: the decisions next to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ovirt_placement.answers.decisions.engine_said import EngineSaid, cut_at, engine_said, near, of_host
from ovirt_placement.answers.decisions.moments import Moment
from ovirt_placement.answers.decisions.past import PastDecision, past, time_text
from ovirt_placement.answers.decisions.record import FILTERS, WEIGHTS, LoggedDecision, about, begins
from ovirt_placement.answers.decisions.ways import Way, ways
from ovirt_placement.answers.document import Document, listed
from ovirt_placement.engine.reading.events import EngineEvent, LatestEvents
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record

#: The weights of a decision follow its filters at once.
_ONE_DECISION_SECONDS = 60.0
#: Who asks about 02:13 means that minute.
_MINUTE_SECONDS = 60.0


class NotAsked(Record, frozen=True, omit_defaults=False):
    """A host of the VM's cluster that the engine did not ask the proxy about."""

    host: Named
    #: What the engine's event says of it; null where none does.
    engine: str | None


class Attempt(Record, frozen=True, omit_defaults=False):
    """The engine asked for a host for the VM."""

    #: Seconds after the moment that was asked about; negative before it.
    after_seconds: float
    filters: PastDecision
    #: Null where the engine asked for none.
    weights: PastDecision | None
    #: Hosts that the cluster has now; why they were left out, the engine alone knows.
    not_asked: tuple[NotAsked, ...]
    #: Where every host was refused.
    ways: tuple[Way, ...]


class Earlier(Record, frozen=True, omit_defaults=False):
    """A refusal before the moment that was asked about."""

    #: Negative: seconds after that moment.
    after_seconds: float
    engine: EngineSaid


class DecisionsAtDocument(Document, frozen=True, kw_only=True, tag="decisions_at"):
    """The decisions about a VM next to a moment, and the engine's events of that time."""

    vm: Named
    #: ISO 8601, and what is to be said of how it was understood.
    at: str
    note: str
    #: The last one until then, and the first one after.
    before: Attempt | None
    after: Attempt | None
    #: ISO 8601: when the record begins, whatever VM its first decision is about; null if before the moment.
    record_begins: str | None
    #: Starts and migrations that failed, near the moment or the decisions.
    events: tuple[EngineSaid, ...]
    #: The last of these before, where none is near; null where there is none either.
    earlier: Earlier | None
    #: Why the engine's events are not known; null if they are.
    events_error: str | None
    #: ISO 8601: the engine has more events than were read, and older ones are lacking here; null if none are.
    events_since: str | None


def decisions_at(
    snapshot: Snapshot,
    vm: Vm,
    record: Path,
    moment: Moment,
    events: LatestEvents,
    events_error: str | None = None,
    only: Host | None = None,
) -> DecisionsAtDocument:
    """The decisions next to a moment, about one host or all. Raises `NoRecord` if there is no record."""
    before: _Found | None = None
    after: _Found | None = None
    for found in _attempts(about(vm.id, record)):
        if found.time <= moment.seconds:
            # By their times, not their order: somebody may have set the clock.
            before = found if before is None or found.time >= before.time else before
        elif after is None or found.time < after.time:
            after = found
    said = [*_events(events.events, vm, moment, before, after)]
    asked_from = min(one.time for one in (before, after) if one) if before or after else moment.seconds
    began = begins(record)
    return DecisionsAtDocument(
        vm=Named(vm.id, vm.name),
        at=time_text(moment.seconds),
        note=moment.note,
        before=None if before is None else _attempt(before, snapshot, vm, moment, said, only),
        after=None if after is None else _attempt(after, snapshot, vm, moment, said, only),
        record_begins=None if began is None or began <= moment.seconds else time_text(began),
        events=tuple(map(engine_said, said)),
        earlier=None if said else _earlier(events.events, vm, moment),
        events_error=events_error,
        events_since=cut_at(events, min(asked_from, moment.seconds)),
    )


class _Found:
    """The filters of a decision, and the weights that followed."""

    def __init__(self, filters: LoggedDecision) -> None:
        self.filters = filters
        self.weights: LoggedDecision | None = None
        self.time = filters.time

    def takes(self, decision: LoggedDecision) -> bool:
        """Whether these are its weights."""
        near = abs(decision.time - self.time) < _ONE_DECISION_SECONDS
        return decision.method == WEIGHTS and self.weights is None and near


def _attempts(found: Iterable[LoggedDecision]) -> Iterator[_Found]:
    latest: _Found | None = None
    for decision in found:
        if decision.method == FILTERS:
            if latest is not None:
                yield latest
            latest = _Found(decision)
        elif latest is not None and latest.takes(decision):
            latest.weights = decision
    if latest is not None:
        yield latest


def _events(
    events: Sequence[EngineEvent], vm: Vm, moment: Moment, *found: _Found | None
) -> Iterator[EngineEvent]:
    spans = [(moment.seconds, moment.seconds + _MINUTE_SECONDS)]
    spans += [(one.time, one.time) for one in found if one is not None]
    wanted = {event.id: event for begin, end in spans for event in near(events, vm.id, begin, end)}
    yield from (wanted[number] for number in sorted(wanted))


def _earlier(events: Iterable[EngineEvent], vm: Vm, moment: Moment) -> Earlier | None:
    until = (one for one in events if one.vm == vm.id and one.time <= moment.seconds)
    last = max(until, key=lambda one: (one.time, one.id), default=None)
    return None if last is None else Earlier(round(last.time - moment.seconds, 3), engine_said(last))


def _attempt(
    found: _Found,
    snapshot: Snapshot,
    vm: Vm,
    moment: Moment,
    events: Iterable[EngineEvent],
    only: Host | None,
) -> Attempt:
    filters = past(found.filters, snapshot, only)
    said = tuple(map(engine_said, near(events, vm.id, found.time, found.time)))
    asked = set(found.filters.hosts)
    left = (host for host in snapshot.hosts_of_cluster.get(vm.cluster, ()) if host.id not in asked)
    return Attempt(
        after_seconds=round(found.time - moment.seconds, 3),
        filters=filters,
        weights=None if found.weights is None else past(found.weights, snapshot, only),
        not_asked=tuple(
            NotAsked(Named(host.id, host.name), of_host(said, host))
            for host in left
            if only is None or host.id == only.id
        ),
        ways=ways(filters.hosts) if found.filters.refused else (),
    )


# -- in words


def distance(after_seconds: float) -> str:
    """How far from the moment that was asked about."""
    seconds = abs(after_seconds)
    side = "before" if after_seconds <= 0 else "after"
    if seconds < 120:
        return f"{seconds:.0f} s {side}"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min {side}"
    return f"{seconds / 3600:.0f} h {side}" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days {side}"


def earlier_text(earlier: Earlier) -> str:
    """The last refusal, with its distance from the moment."""
    said = earlier.engine
    return f"The engine refused it last {distance(earlier.after_seconds)}, {said.time}: {said.sentence}"


def not_asked_lines(found: Iterable[NotAsked], *, whole: bool = False) -> Iterator[str]:
    """The hosts that the engine had left out before it asked."""
    silent = sorted(one.host.name for one in found if one.engine is None)
    yield from (f"{one.host.name}: {one.engine}" for one in found if one.engine is not None)
    if silent:
        yield (
            f"Not asked about: {listed(silent, whole=whole)}: the engine had left out what its own filters"
            " refused, or was not up"
        )
