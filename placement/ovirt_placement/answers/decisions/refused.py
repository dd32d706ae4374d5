"""Every start or migration that was refused lately, by the proxy's record and by the engine's events."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ovirt_placement.answers.decisions.at_time import (
    NEAR_SECONDS,
    EngineSaid,
    UnaskedHost,
    cut_at,
    cut_text,
    engine_said,
    not_asked_lines,
    unasked,
)
from ovirt_placement.answers.decisions.decision import HostInDecision, Way, past, remedies, time_text
from ovirt_placement.answers.document import Document, listed
from ovirt_placement.answers.proxy import FILTERS, LoggedDecision, decisions
from ovirt_placement.engine.events import START_FAILED, EngineEvent, LatestEvents
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.names import Named, named_vm
from ovirt_placement.model.record import Record

#: The engine tries again: what is refused for the same reasons within this time is one refusal.
_AGAIN_SECONDS = 3600.0
#: Of the events of a refusal that came again and again, the last ones.
_MOST_EVENTS = 3


class RefusedPlacement(Record, frozen=True, omit_defaults=False):
    """A VM for which no host was found, once or several times in a row for the same reasons."""

    vm: Named
    #: `start` or `migration`, as the engine's events say; null where they do not.
    what: str | None
    #: ISO 8601; the first and the last time.
    first: str
    last: str
    times: int
    #: Those that the engine asked the proxy about, when it did last; none where its own filters left none.
    hosts: tuple[HostInDecision, ...]
    #: Hosts that the cluster has now, and that the engine did not ask about.
    not_asked: tuple[UnaskedHost, ...]
    events: tuple[EngineSaid, ...]
    ways: tuple[Way, ...]


class RefusedPlacementsDocument(Document, frozen=True, kw_only=True, tag="refused_placements"):
    """Starts and migrations that were refused, the oldest first."""

    #: ISO 8601.
    since: str
    #: Since when the proxy's record has decisions; null where it has none, or `record_error` says why.
    recorded_since: str | None
    refused: tuple[RefusedPlacement, ...]
    #: Why the record, or the engine's events, are not known; null if they are.
    record_error: str | None
    events_error: str | None
    #: ISO 8601: the engine has more events than were read, and older ones are lacking here; null if none are.
    events_since: str | None


@dataclass
class _Row:
    """What was refused several times in a row for the same reasons: by the proxy, or before it was asked."""

    vm: str
    #: Equal of two that were refused for the same reasons.
    reasons: object
    #: The last one; None if the engine's own filters left no host.
    decision: LoggedDecision | None
    times: list[float]
    events: list[EngineEvent] = field(default_factory=list)

    def has(self, event: EngineEvent) -> bool:
        """Whether the event is about one of these."""
        at = bisect_left(self.times, event.time - NEAR_SECONDS)
        return at < len(self.times) and self.times[at] <= event.time + NEAR_SECONDS


def refused_placements(
    snapshot: Snapshot,
    record: Path | None,
    since: float,
    events: LatestEvents,
    errors: tuple[str | None, str | None] = (None, None),
    only: Vm | None = None,
) -> RefusedPlacementsDocument:
    """What was refused since a moment, of one VM or all.

    `errors` say why there is no record, and why there are no events. Raises `NoRecord` if the record
    cannot be read.
    """
    rows = _Rows()
    began = None if record is None else rows.read(record, since, only)
    for event in events.events:
        if event.time >= since and event.vm is not None and (only is None or event.vm == only.id):
            rows.add_event(event, event.vm)
    found = sorted((row for own in rows.by_vm.values() for row in own), key=lambda row: row.times[0])
    return RefusedPlacementsDocument(
        since=time_text(since),
        recorded_since=None if began is None else time_text(began),
        refused=tuple(_placement(row, snapshot) for row in found),
        record_error=errors[0],
        events_error=errors[1],
        events_since=cut_at(events, since),
    )


class _Rows:
    """What was refused, gathered while the record is read: of a row only the last decision is kept."""

    def __init__(self) -> None:
        self.by_vm: defaultdict[str, list[_Row]] = defaultdict(list)

    def read(self, record: Path, since: float, only: Vm | None) -> float | None:
        """Take what the record has; return when it begins."""
        began: float | None = None
        mark = FILTERS.encode()
        for decision in decisions(record, lambda line: mark in line):
            began = decision.time if began is None else min(began, decision.time)
            if decision.refused and decision.time >= since and (only is None or decision.vm == only.id):
                reasons = decision.hosts, decision.fallen, decision.failure_sentences
                self._add(decision.vm, decision.time, reasons, decision)
        for rows in self.by_vm.values():
            for row in rows:
                row.times.sort()  # the clock may have been set
        return began

    def add_event(self, event: EngineEvent, vm: str) -> None:
        """Take what the engine says: of a refusal of the proxy, or of its own filters alone."""
        rows = self.by_vm[vm]
        row = next((row for row in rows if row.decision is not None and row.has(event)), None)
        if row is None:
            row = self._add(vm, event.time, event.description, None)
        row.events.append(event)

    def _add(self, vm: str, time: float, reasons: object, decision: LoggedDecision | None) -> _Row:
        rows = [row for row in self.by_vm[vm] if (row.decision is None) == (decision is None)]
        last = rows[-1] if rows else None
        if last is None or last.reasons != reasons or not 0 <= time - last.times[-1] <= _AGAIN_SECONDS:
            last = _Row(vm, reasons, decision, [])
            self.by_vm[vm].append(last)
        last.decision = decision
        last.times.append(time)
        return last


def _placement(row: _Row, snapshot: Snapshot) -> RefusedPlacement:
    said = tuple(map(engine_said, row.events[-_MOST_EVENTS:]))
    hosts = () if row.decision is None else past(row.decision, snapshot).hosts
    vm = snapshot.vm_by_id.get(row.vm)
    there = snapshot.hosts_of_cluster.get(vm.cluster, ()) if vm is not None else ()
    return RefusedPlacement(
        vm=named_vm(row.vm, snapshot),
        what=_what(row.events),
        first=time_text(row.times[0]),
        last=time_text(row.times[-1]),
        times=len(row.times),
        hosts=hosts,
        not_asked=unasked(there, {one.host.id for one in hosts}, said),
        events=said,
        ways=remedies(hosts) if hosts else (),
    )


def _what(events: Iterable[EngineEvent]) -> str | None:
    codes = {event.code for event in events}
    if not codes:
        return None
    return "start" if codes & START_FAILED else "migration"


# -- in words
def lines(answer: RefusedPlacementsDocument, *, whole: bool = False) -> Iterator[str]:
    """Each refusal with its reasons, and what would have let the VM start."""
    if not answer.refused:
        yield f"No start or migration is known to have been refused since {answer.since}{_only(answer)}."
    for one in answer.refused:
        yield from _lines(one, whole=whole)
        yield ""
    if answer.record_error is not None:
        yield f"The proxy's decisions are not known: {answer.record_error}."
    elif answer.recorded_since is None:
        yield "The proxy has recorded no decision yet."
    elif answer.recorded_since > answer.since:
        yield f"The proxy's record begins at {answer.recorded_since}."
    if answer.events_error is not None:
        yield f"The engine's events are not known: {answer.events_error}."
    if answer.events_since is not None:
        yield cut_text(answer.events_since)


def _only(answer: RefusedPlacementsDocument) -> str:
    """What it is known by, where something could not be asked."""
    if answer.record_error is None:
        return "" if answer.events_error is None else ", by the proxy's decisions alone"
    return ", by the engine's events alone" if answer.events_error is None else ": nothing could be asked"


def _lines(one: RefusedPlacement, *, whole: bool) -> Iterator[str]:
    often = "" if one.times == 1 else f", {one.times} times until {one.last}"
    yield f"{one.first}  {one.what or 'start or migration'} of VM {one.vm.name} refused{often}"
    for said, hosts in _by_reason(one.hosts):
        yield f"  {listed(hosts, whole=whole)}: {said}"
    yield from (f"  {line}" for line in not_asked_lines(one.not_asked, whole=whole) if one.hosts)
    if not one.hosts:
        yield from (f"  The engine: {said.sentence}" for said in one.events)
    for way in one.ways:
        yield f"  It could have started {way.sentence}"


def _by_reason(hosts: Iterable[HostInDecision]) -> Iterator[tuple[str, list[str]]]:
    """Hosts that were dropped for the same reasons together."""
    alike: dict[str, list[str]] = {}
    for one in hosts:
        said = "; ".join(f"{reason.sentence} [{reason.unit}]" for reason in one.reasons)
        alike.setdefault(said, []).append(one.host.name)
    yield from alike.items()
