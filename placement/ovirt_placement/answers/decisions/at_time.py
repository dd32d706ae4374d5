"""Why a VM did not start, or went where it went, at some moment: the decisions and events next to it."""

from __future__ import annotations

import re
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ovirt_placement.answers import decisions
from ovirt_placement.answers.document import Document, Table, listed, typed
from ovirt_placement.answers.proxy import FILTERS, WEIGHTS, LoggedDecision, about, begins
from ovirt_placement.answers.question import ConfiguredState
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.engine.events import LatestEvents

# -- Reads a moment as an administrator writes it: 02:13, yesterday 02:13, 2026-01-31 02:13.
_CLOCK: Final = re.compile(r"(today +|yesterday +)?(\d{1,2}:\d\d)(:\d\d)?")
#: How many days ago a time of day may have been.
_DAYS: Final[Mapping[str, tuple[int, ...]]] = {"": (0, 1), "today": (0,), "yesterday": (1,)}
_UNIT_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FORMS: Final = "write 02:13, yesterday 02:13, 2026-01-31 02:13 or 2026-01-31T02:13:00+01:00"


def read_moment(text: str, now: float, zone: tzinfo | None = None) -> float:
    """The moment that is meant, in seconds since the epoch, as `now` is.

    A time without a zone is of `zone`, else of this machine's. A time of day is today's, or yesterday's where
    today's is still to come. Raises `ValueError`.
    """
    words = text.strip().lower()
    clock, days = _CLOCK.fullmatch(words), _DAYS["today"]
    try:
        if clock:
            at = datetime.strptime(clock[2] + (clock[3] or ":00"), "%H:%M:%S").time()
            found = datetime.combine(datetime.fromtimestamp(now, zone), at)
            # In the night in which clocks are set back an hour comes twice: the last one counts.
            days = _DAYS[(clock[1] or "").strip()]
        else:
            found = datetime.fromisoformat(words.upper().replace(" ", "T", 1))
        meant = [
            (found - timedelta(day)).replace(fold=fold, tzinfo=found.tzinfo or zone).timestamp()
            for day in days
            for fold in ((0, 1) if clock else (found.fold,))
        ]
    except ValueError:
        raise ValueError(f'"{text}" is no moment: {_FORMS}') from None
    return max([one for one in meant if one <= now] or meant)


def moment(text: str) -> float:
    """The moment that is meant, by the clock of this machine."""
    return read_moment(text, time.time())


def since_moment(text: str) -> float:
    """A moment, in seconds since the epoch: so long ago, or as that of `--at`."""
    number, unit = text[:-1], text[-1:]
    if unit in _UNIT_SECONDS and number.isdecimal():
        return max(0.0, time.time() - float(number) * _UNIT_SECONDS[unit])
    return moment(text)


# -- Why a VM did not start, or went where it went, at some moment: the decisions next to it.
#: The weights of a decision follow its filters at once.
_ONE_DECISION_SECONDS = 60.0
#: Who asks about 02:13 means that minute.
_MINUTE_SECONDS = 60.0


class UnaskedHost(Record, frozen=True, omit_defaults=False):
    """A host of the VM's cluster that the engine did not ask the proxy about."""

    host: Named
    #: What the engine's event says of it; null where none does.
    engine: str | None


def unasked(
    there: Iterable[Host], asked: Container[str], said: Sequence[decisions.EngineSaid]
) -> tuple[UnaskedHost, ...]:
    """The hosts that the proxy was not asked about, with what the engine's events say of each."""
    left = (host for host in there if host.id not in asked)
    return tuple(UnaskedHost(Named(host.id, host.name), decisions.said_of_host(said, host)) for host in left)


def refusals(state: ConfiguredState) -> tuple[LatestEvents, str | None]:
    """What the engine says of refusals, or why it is not known."""
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.engine.events import REFUSED, START_FAILED, LatestEvents, find_kinds

    if not state.live:
        return LatestEvents((), None), "a state file has none"
    try:
        with EngineConnection(state.config().engine) as connection:
            return find_kinds(connection, START_FAILED | REFUSED), None
    except UserError as error:
        return LatestEvents((), None), str(error)


class Attempt(Record, frozen=True, omit_defaults=False):
    """The engine asked for a host for the VM."""

    #: Seconds after the moment that was asked about; negative before it.
    after_seconds: float
    filters: decisions.PastDecision
    #: Null where the engine asked for none.
    weights: decisions.PastDecision | None
    #: Hosts that the cluster has now; why they were left out, the engine alone knows.
    not_asked: tuple[UnaskedHost, ...]
    #: Where every host was refused.
    ways: tuple[decisions.Remedy, ...]


class Earlier(Record, frozen=True, omit_defaults=False):
    """A refusal before the moment that was asked about."""

    #: Negative: seconds after that moment.
    after_seconds: float
    engine: decisions.EngineSaid


class DecisionsAtDocument(Document, frozen=True, kw_only=True, tag="decisions_at"):
    """The decisions about a VM next to a moment, and the engine's events of that time."""

    vm: Named
    #: ISO 8601.
    at: str
    #: The last one until then, and the first one after.
    before: Attempt | None
    after: Attempt | None
    #: ISO 8601: when the record begins, whatever VM its first decision is about; null if before the moment.
    record_begins: str | None
    #: Starts and migrations that failed, near the moment or the decisions.
    events: tuple[decisions.EngineSaid, ...]
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
    moment: float,
    events: LatestEvents,
    events_error: str | None = None,
    only: Host | None = None,
) -> DecisionsAtDocument:
    """The decisions next to a moment, about one host or all. Raises `NoRecord` if there is no record."""
    attempts = _attempts(about(vm.id, record))
    # By their times, not their order: the clock may have been set.
    before = max((one for one in attempts if one.time <= moment), key=lambda one: one.time, default=None)
    after = min((one for one in attempts if one.time > moment), key=lambda one: one.time, default=None)
    spans = [(moment, moment + _MINUTE_SECONDS), *((one.time, one.time) for one in (before, after) if one)]
    wanted = {event.id: event for span in spans for event in decisions.near(events.events, vm.id, *span)}
    said = [wanted[number] for number in sorted(wanted)]
    until = (one for one in decisions.refusals_of(events, vm.id) if one.time <= moment)
    last = None if said else max(until, key=lambda one: (one.time, one.id), default=None)
    asked_from = min(one.time for one in (before, after) if one) if attempts else moment
    began = begins(record) if before is None else None
    there = [one for one in snapshot.hosts_of_cluster.get(vm.cluster, ()) if only in (None, one)]

    def attempt(found: _Found | None) -> Attempt | None:
        if found is None:
            return None
        filters = decisions.past_decision(found.filters, snapshot, only)
        of_it = tuple(map(decisions.engine_said, decisions.near(said, vm.id, found.time, found.time)))
        return Attempt(
            after_seconds=round(found.time - moment, 3),
            filters=filters,
            weights=None if found.weights is None else decisions.past_decision(found.weights, snapshot, only),
            not_asked=unasked(there, found.filters.hosts, of_it),
            ways=decisions.remedies(filters.hosts) if found.filters.refused else (),
        )

    return DecisionsAtDocument(
        vm=Named(vm.id, vm.name),
        at=decisions.time_text(moment),
        before=attempt(before),
        after=attempt(after),
        record_begins=None if began is None or began <= moment else decisions.time_text(began),
        events=tuple(map(decisions.engine_said, said)),
        earlier=None if last is None else Earlier(round(last.time - moment, 3), decisions.engine_said(last)),
        events_error=events_error,
        events_since=decisions.cut_at(events, min(asked_from, moment)),
    )


@dataclass
class _Found:
    """The filters of a decision, and the weights that followed."""

    filters: LoggedDecision
    weights: LoggedDecision | None = None

    @property
    def time(self) -> float:
        return self.filters.time


def _attempts(found: Iterable[LoggedDecision]) -> list[_Found]:
    attempts: list[_Found] = []
    for decision in found:
        if decision.method == FILTERS:
            attempts.append(_Found(decision))
        elif decision.method == WEIGHTS and attempts and attempts[-1].weights is None:
            soon = abs(decision.time - attempts[-1].time) < _ONE_DECISION_SECONDS
            attempts[-1].weights = decision if soon else None
    return attempts


# -- in words
def at_time_text(
    answer: DecisionsAtDocument, record: str, snapshot: Snapshot, *, whole: bool
) -> Iterator[str | Table]:
    yield f"VM {answer.vm.name} at {answer.at}"
    if answer.record_begins is not None:
        yield f"The proxy's record begins later, at {answer.record_begins}."
    for title, attempt in (("The last decision until then", answer.before), ("The next one", answer.after)):
        if attempt is not None:
            yield from _attempt_text(title, attempt, whole=whole)
    if answer.before is None and answer.after is None:
        yield f"{record} holds no decision about it: the engine's own filters left no host, or it did not ask"
    yield from _events_text(answer, typed(answer.vm, snapshot.vms))


def _events_text(answer: DecisionsAtDocument, vm: str) -> Iterator[str]:
    if answer.events:
        yield ""
    for event in answer.events:
        yield f"The engine, {event.time}: {event.sentence}"
        if decisions.names_one_for_all(event.sentence):
            yield (
                "  These are the engine's words: it says the same of several hosts under the name of one, and"
                f" names no group. What our rules say now: ovirt-placement why {vm}"
            )
    if answer.earlier is not None:
        yield f"\n{earlier_text(answer.earlier)}"
    if answer.events_error is not None:
        yield f"The engine's events are not known: {answer.events_error}"
    if answer.events_since is not None:
        yield decisions.cut_text(answer.events_since)


def _attempt_text(title: str, attempt: Attempt, *, whole: bool) -> Iterator[str | Table]:
    yield f"\n{title}, {distance(attempt.after_seconds)}:"
    yield from decisions.decision_text(attempt.filters)
    if attempt.weights is not None:
        yield from decisions.decision_text(attempt.weights)
    yield from not_asked_lines(attempt.not_asked, whole=whole)
    yield from (f"It could have been placed {way.sentence}" for way in attempt.ways)


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


def not_asked_lines(found: Iterable[UnaskedHost], *, whole: bool = False) -> Iterator[str]:
    """The hosts that the engine had left out before it asked."""
    silent = sorted(one.host.name for one in found if one.engine is None)
    yield from (f"{one.host.name}: {one.engine}" for one in found if one.engine is not None)
    if silent:
        yield (
            f"Not asked about: {listed(silent, whole=whole)}: the engine had left out what its own filters"
            " refused, or was not up"
        )
