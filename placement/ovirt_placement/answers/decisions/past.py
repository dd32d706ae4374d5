"""The question `why`: which hosts may take a VM now, or what became of it, and what was refused lately."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ovirt_placement.answers.decisions import (
    NEAR_SECONDS,
    EngineSaid,
    HostInDecision,
    LastDecisionsDocument,
    Remedy,
    at_time,
    cut_at,
    cut_text,
    decision_text,
    engine_said,
    last_decisions,
    past_decision,
    refusals_of,
    remedies,
    time_text,
)
from ovirt_placement.answers.document import Document, Shown, Table, listed
from ovirt_placement.answers.placement import ALSO, WhyDocument, why, why_text
from ovirt_placement.answers.proxy import LoggedDecision, NoRecord, decisions, record_of
from ovirt_placement.answers.question import VMS, ConfiguredState, Names, Parameter, Reads, Route, question
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import Named, named_vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.rule_list import NO_UNITS
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.engine.events import EngineEvent

_WEEK_SECONDS = 7 * 86400.0


def _record_file(state: ConfiguredState, file: Path | None) -> Path:
    """The proxy's record of decisions. Raises `NoRecord` where none is known."""
    return file or record_of(state.config().engine.name)


_ITS_HOSTS = Names(
    "host of its cluster",
    lambda snapshot, found: snapshot.hosts_of_cluster.get(found["vm"].cluster, ()) if found["vm"] else (),
)


@question(
    "why",
    "which hosts may take a VM, and why not the others",
    """\
Show for each host of the VM's cluster whether it may take the VM now, and why not, by the engine's filters
and by ours (docs/rules.md). With --last, --at or --refused, show what the scheduler proxy decided in the
past, from its record and the engine's events (docs/proxy.md).
""",
    examples="""\
  ovirt-placement why web1                  # every host of its cluster
  ovirt-placement why web1 --fail-if-refused   # for a script
  ovirt-placement why web1 --at 02:13       # why it did not start last night
  ovirt-placement why --refused --since 1d  # all that was refused since yesterday
""",
    text=lambda answer, shown: _text(answer, shown),
    # With that option, it is an answer about now.
    status=lambda answer, shown: int(
        bool(shown.words.get("fail_if_refused")) and not any(one.accepted for one in answer.hosts)
    ),
    reads=Reads.CONFIGURED,
    # Filters ask for what their units read; placement keys, where no policy says so, for all.
    measured=lambda words: Measured.FOR_RESERVATION if words.get("also") else Measured.FOR_UNITS,
    routes=(Route("/vms/{name}/why", answer=WhyDocument),),
)
def why_now_or_then(
    state: ConfiguredState,
    vm: Annotated[
        Vm | None,
        Parameter(
            "by name or id; with --refused, else all", "VM", VMS, positional=True, argument={"nargs": "?"}
        ),
    ] = None,
    hosts: Annotated[
        Sequence[Host],
        Parameter("only this host, by name or id", "HOST", _ITS_HOSTS, every=True, positional=True),
    ] = (),
    also: ALSO = NO_UNITS,
    *,
    fail_if_refused: Annotated[bool, Parameter("exit with status 1 if no host accepts the VM")] = False,
    last: Annotated[
        int | None,
        Parameter(
            "the last N decisions about the VM (default: 1)",
            "N",
            one_of="past",
            argument={"nargs": "?", "const": 1},
        ),
    ] = None,
    at: Annotated[
        float | None,
        Parameter(
            'the decisions around that time: 02:13, "yesterday 02:13", 2026-01-31T02:13+01:00',
            "TIME",
            one_of="past",
            argument={"type": at_time.moment},
        ),
    ] = None,
    refused: Annotated[bool, Parameter("starts and migrations that were refused", one_of="past")] = False,
    since: Annotated[
        float | None,
        Parameter(
            "with --refused: 12h, 3d, or a time as of --at (default: 7d)",
            "TIME",
            argument={"type": at_time.since_moment},
        ),
    ] = None,
    decisions: Annotated[
        Path | None,
        Parameter("the proxy's record, if not where its configuration says", "FILE", argument={"type": Path}),
    ] = None,
) -> Document:
    """What filters say of each host now, or what the record says of the past. Raises `UserError`."""
    if since is not None and not refused:
        raise UserError("--since goes with --refused")
    if fail_if_refused and (refused or last is not None or at is not None):
        raise UserError("--fail-if-refused is about now: it goes without --last, --at and --refused")
    if refused:
        return _refused(state, time.time() - _WEEK_SECONDS if since is None else since, decisions, vm)
    if vm is None:
        raise UserError("which VM? why VM, or why --refused for all that were refused")
    snapshot = state.snapshot
    every = snapshot.hosts_of_cluster.get(vm.cluster, ())
    only = hosts[0] if len(hosts) == 1 and hosts != every else None
    if last is not None:
        return last_decisions(snapshot, vm, _record_file(state, decisions), only, last)
    if at is not None:
        record, (events, error) = _record_file(state, decisions), at_time.refusals(state)
        return at_time.decisions_at(snapshot, vm, record, at, events, error, only)
    if not hosts:
        raise UserError(f"cluster {snapshot.cluster_by_id[vm.cluster].name} of VM {vm.name} has no hosts")
    return why(snapshot, vm, hosts, also)


def _text(answer: Document, shown: Shown) -> Iterator[str | Table]:
    if isinstance(answer, WhyDocument):
        yield from why_text(answer, shown)
        return
    if isinstance(answer, RefusedPlacementsDocument):
        yield "\n".join(_refused_lines(answer, whole=shown.whole)).rstrip()
        return
    record = _record_file(shown.state, shown.words["decisions"])
    if isinstance(answer, LastDecisionsDocument):
        for decision in answer.decisions:
            yield from decision_text(decision)
        if not answer.decisions:
            yield f"{record} has no decision about VM {answer.vm.name}"
    elif isinstance(answer, at_time.DecisionsAtDocument):
        yield from at_time.at_time_text(answer, str(record), shown.state.snapshot, whole=shown.whole)


# -- Every start or migration that was refused lately, by the proxy's record and by the engine's events.
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
    not_asked: tuple[at_time.UnaskedHost, ...]
    events: tuple[EngineSaid, ...]
    ways: tuple[Remedy, ...]


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

    def seconds_from(self, event: EngineEvent) -> float:
        """How far the event is from the nearest of these."""
        at = bisect_left(self.times, event.time)
        return min(abs(event.time - one) for one in self.times[max(0, at - 1) : at + 1])


def _refused(state: ConfiguredState, since: float, file: Path | None, only: Vm | None) -> Document:
    """What was refused since a moment, of one VM or all; without a record, by the engine's events alone."""
    rows, began, record_error = _Rows(), None, None
    events, events_error = at_time.refusals(state)
    try:
        for decision in decisions(_record_file(state, file)):
            began = decision.time if began is None else min(began, decision.time)
            if decision.refused and decision.time >= since and (only is None or decision.vm == only.id):
                reasons = decision.hosts, decision.fallen, decision.failure_sentences
                rows.add(decision.vm, decision.time, reasons, decision)
    except NoRecord as error:
        rows, began, record_error = _Rows(), None, str(error)
    for row in rows.all:
        row.times.sort()  # the clock may have been set
    for event in refusals_of(events, None if only is None else only.id):
        if event.time >= since and event.vm is not None:
            own = (row for row in rows.by_vm[event.vm] if row.decision is not None)
            near = [one for one in own if one.seconds_from(event) <= NEAR_SECONDS]
            near = near or [rows.add(event.vm, event.time, event.description, None)]
            min(near, key=lambda one: one.seconds_from(event)).events.append(event)
    found = sorted(rows.all, key=lambda row: row.times[0])
    return RefusedPlacementsDocument(
        since=time_text(since),
        recorded_since=None if began is None else time_text(began),
        refused=tuple(_placement(row, state.snapshot) for row in found),
        record_error=record_error,
        events_error=events_error,
        events_since=cut_at(events, since),
    )


class _Rows:
    """What was refused, gathered while the record is read: of a row only the last decision is kept."""

    def __init__(self) -> None:
        self.by_vm: defaultdict[str, list[_Row]] = defaultdict(list)

    @property
    def all(self) -> list[_Row]:
        return [row for own in self.by_vm.values() for row in own]

    def add(self, vm: str, time: float, reasons: object, decision: LoggedDecision | None) -> _Row:
        """Add it to the last row of its VM, unless it was refused for other reasons, or much earlier."""
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
    hosts = () if row.decision is None else past_decision(row.decision, snapshot).hosts
    starts = [engine_said(event).start for event in row.events]
    vm = snapshot.vm_by_id.get(row.vm)
    there = snapshot.hosts_of_cluster.get(vm.cluster, ()) if vm is not None else ()
    return RefusedPlacement(
        vm=named_vm(row.vm, snapshot),
        what=None if not starts else "start" if any(starts) else "migration",
        first=time_text(row.times[0]),
        last=time_text(row.times[-1]),
        times=len(row.times),
        hosts=hosts,
        not_asked=at_time.unasked(there, {one.host.id for one in hosts}, said),
        events=said,
        ways=remedies(hosts) if hosts else (),
    )


# -- in words
def _refused_lines(answer: RefusedPlacementsDocument, *, whole: bool = False) -> Iterator[str]:
    if not answer.refused:
        only = ""  # what it is known by, where something could not be asked
        if answer.record_error is not None:
            only = (
                ": nothing could be asked"
                if answer.events_error is not None
                else ", by the engine's events alone"
            )
        elif answer.events_error is not None:
            only = ", by the proxy's decisions alone"
        yield f"No start or migration is known to have been refused since {answer.since}{only}."
    for one in answer.refused:
        yield from _refusal_lines(one, whole=whole)
        yield ""
    if answer.record_error is not None:
        yield f"The proxy's decisions are not known: {answer.record_error}."
    elif answer.recorded_since is None:
        yield "The proxy has recorded no decision yet."
    elif datetime.fromisoformat(answer.recorded_since) > datetime.fromisoformat(answer.since):
        yield f"The proxy's record begins at {answer.recorded_since}."
    if answer.events_error is not None:
        yield f"The engine's events are not known: {answer.events_error}."
    if answer.events_since is not None:
        yield cut_text(answer.events_since)


def _refusal_lines(placement: RefusedPlacement, *, whole: bool) -> Iterator[str]:
    often = "" if placement.times == 1 else f", {placement.times} times until {placement.last}"
    what = placement.what or "start or migration"
    yield f"{placement.first}  {what} of VM {placement.vm.name} refused{often}"
    alike: dict[str, list[str]] = {}
    for host in placement.hosts:
        said = "; ".join(f"{reason.sentence} [{reason.unit}]" for reason in host.reasons)
        alike.setdefault(said, []).append(host.host.name)
    yield from (f"  {listed(hosts, whole=whole)}: {said}" for said, hosts in alike.items())
    if placement.hosts:
        yield from (f"  {line}" for line in at_time.not_asked_lines(placement.not_asked, whole=whole))
    else:
        yield from (f"  The engine: {said.sentence}" for said in placement.events)
    yield from (f"  It could have been placed {way.sentence}" for way in placement.ways)
