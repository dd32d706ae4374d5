"""What the scheduler proxy answered, with names and reasons, and what the engine's own events say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from ovirt_placement.answers.document import Document, Table, listed
from ovirt_placement.answers.proxy import BALANCE, FILTERS, WEIGHTS, LoggedDecision, about
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import Named, group_name, host_name, named_host, named_hosts, vm_name
from ovirt_placement.model.record import From, Record, with_names
from ovirt_placement.rules.affinity.filters import NEGATIVE_PEER_HERE, POSITIVE_PEER_ELSEWHERE

if TYPE_CHECKING:
    from ovirt_placement.engine.events import EngineEvent, LatestEvents
    from ovirt_placement.units.decisions import RecordedReason, RecordedReasons


# -- Why hosts were dropped, from what units wrote into the record.
class PastReason(Record, frozen=True, omit_defaults=False):
    """Why a unit dropped a host."""

    unit: str
    #: Which reason it is, for programs; empty where the unit recorded none.
    kind: str
    #: The affinity group, or legacy label, and the VM that it is about.
    group: Named | None
    vm: Named | None
    sentence: str


def reasons_of(decision: LoggedDecision, snapshot: Snapshot) -> Mapping[str, tuple[PastReason, ...]]:
    """By host, why it was dropped; `snapshot` has the names that the record lacks."""
    known = {unit: _read(said) for unit, said in decision.reasons.items()}

    def of_unit(unit: str, host: str) -> Iterator[PastReason]:
        """A unit that recorded no reason is named alone."""
        said = known.get(unit, {})
        if not isinstance(said, Mapping):
            if reasons := said.hosts.get(host):
                yield from (_reason(unit, said, one, snapshot) for one in reasons)
                return
            said = {}
        text = decision.failure_sentences.get(unit)
        if text is None:
            others = said.get(host) or "no reason is recorded"
            text = "; ".join(map(str, others)) if isinstance(others, list) else str(others)
        yield PastReason(unit, "", None, None, text)

    return {
        host: tuple(reason for unit in units for reason in of_unit(unit, host))
        for host, units in decision.fallen.items()
    }


def _read(said: Any) -> RecordedReasons | Mapping[str, Any]:
    """Ours in our form; those of other plugins as a map of hosts."""
    from ovirt_placement.units.decisions import RecordedReasons  # the SDK takes long to load

    try:
        return msgspec.convert(said, RecordedReasons)
    except msgspec.ValidationError:
        return said if isinstance(said, dict) else {}


def _reason(unit: str, said: RecordedReasons, reason: RecordedReason, snapshot: Snapshot) -> PastReason:
    if not 0 <= reason.kind < len(said.kinds):
        return PastReason(unit, "", None, None, "its reason cannot be read")
    kind, sentence = said.kinds[reason.kind]
    vm, group = reason.vm or "", reason.group or ""
    of_vm = Named(vm, said.vms.get(vm) or vm_name(vm, snapshot))
    of_group = Named(group, said.groups.get(group) or group_name(group, snapshot))
    try:
        text = sentence.format(
            vm=of_vm.name,
            host=host_name(reason.host or "", snapshot),
            group=of_group.name,
            number=reason.number,
            unit=reason.unit or "",
            status=reason.status or "",
        )
    except (LookupError, ValueError, AttributeError, TypeError):
        text = sentence  # of a release that says more
    return PastReason(unit, kind, of_group if group else None, of_vm if vm else None, text)


# -- One answer of the scheduler proxy with names, as data and in words.
class HostInDecision(Record, frozen=True, omit_defaults=False):
    """What the proxy's units said of one host."""

    host: Named
    #: Names of the units that dropped it.
    dropped_by: tuple[str, ...]
    #: Why they did.
    reasons: tuple[PastReason, ...]
    #: By unit; lower is better.
    weights: Mapping[str, int]


class PastDecision(Record, frozen=True, omit_defaults=False):
    """One answer of the proxy."""

    #: ISO 8601.
    time: Annotated[str, From(lambda decision, _: time_text(decision.time))]
    #: The id that the proxy's log knows the call by.
    request: str
    method: str
    seconds: float
    #: By unit: how old the state was that it decided on, in seconds, where it says so.
    state_age_seconds: Mapping[str, float]
    sentence: str
    #: Of weights, the units that gave them.
    weighed_by: Annotated[tuple[str, ...], From(lambda decision, _: tuple(decision.weights))]
    hosts: tuple[HostInDecision, ...]
    #: Of a balance, the hosts that the VM is to move to.
    move_to: tuple[Named, ...]
    #: What units that failed, or refused the VM, had to say.
    failures: Annotated[Mapping[str, str], From("failure_sentences")]


def past_decision(decision: LoggedDecision, snapshot: Snapshot, only: Host | None = None) -> PastDecision:
    """A decision about one host, or all that the engine asked about; `snapshot` has the names."""
    move_to = named_hosts(decision.balance[1], snapshot) if decision.balance else ()
    reasons = reasons_of(decision, snapshot)
    return with_names(
        PastDecision,
        decision,
        snapshot,
        sentence=_outcome_text(decision, move_to),
        hosts=tuple(
            HostInDecision(
                named_host(host, snapshot),
                decision.fallen.get(host, ()),
                reasons.get(host, ()),
                {unit: weights[at] for unit, weights in decision.weights.items()},
            )
            for at, host in enumerate(decision.hosts)
            if only is None or host == only.id
        ),
        move_to=move_to,
    )


def time_text(seconds: float) -> str:
    """Seconds since the epoch in the time of this machine's zone."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(sep=" ", timespec="milliseconds")


def _outcome_text(decision: LoggedDecision, move_to: Iterable[Named]) -> str:
    if decision.method == FILTERS:
        return f"{len(decision.hosts) - len(decision.fallen)} of {len(decision.hosts)} hosts passed"
    if decision.balance is not None:
        return "it is to move to " + " or ".join(host.name for host in move_to)
    return "weights, of which the lowest is best"


# -- in words
def decision_lines(found: PastDecision) -> Iterator[str]:
    """When it was answered, how long that took, what it came to, and what units had to say."""
    oldest = max(found.state_age_seconds.values(), default=None)
    age = "" if oldest is None else f", on a state {oldest:.1f} s old"
    took = f"({found.seconds * 1e3:.1f} ms{age}, request {found.request})"
    yield f"{found.time} {found.method} {took}: {found.sentence}"
    yield from (f"{unit} {sentence}" for unit, sentence in found.failures.items())


def decision_text(found: PastDecision) -> Iterator[str | Table]:
    yield from decision_lines(found)
    if columns := decision_headers(found):
        yield Table(decision_rows(found), columns)
    yield ""


def decision_headers(found: PastDecision) -> tuple[str, ...]:
    """Of the table of its hosts; none, if it is not about hosts."""
    if found.method == FILTERS:
        return ("host", "verdict", "why", "by")
    return ("host", *found.weighed_by) if found.method == WEIGHTS else ()


def decision_rows(found: PastDecision) -> list[tuple[object, ...]]:
    if found.method == WEIGHTS:
        return [(one.host.name, *one.weights.values()) for one in found.hosts]
    return [
        (
            decision.host.name,
            "dropped" if decision.dropped_by else "passed",
            "\n".join(reason.sentence for reason in decision.reasons),
            "\n".join(reason.unit for reason in decision.reasons),
        )
        for decision in found.hosts
    ]


# -- What would have let a VM start that was refused on every host, as far as the record says.
#: How many ways a person reads, the simplest first.
_MOST_REMEDIES = 5


class Remedy(Record, frozen=True, omit_defaults=False):
    """One change with which hosts would have passed the proxy's filters, as things stood."""

    #: `relax`: these rules were not hard, or not there; `move`: these VMs ran elsewhere.
    kind: str
    #: Ids of affinity groups, else names of policy units; ids of VMs.
    what: tuple[str, ...]
    hosts: tuple[Named, ...]
    sentence: str


def remedies(hosts: tuple[HostInDecision, ...]) -> tuple[Remedy, ...]:
    """The smallest changes, those first that let most hosts pass; none where any host passed."""
    if any(not one.dropped_by for one in hosts):
        return ()
    joined = {
        reason.vm.id
        for one in hosts
        for reason in one.reasons
        if reason.vm and reason.kind == POSITIVE_PEER_ELSEWHERE.name
    }
    moves = _remedies(hosts, "move", "with {} on another host", _moves)
    found = (
        # It would have to be on that host, too.
        *(one for one in moves if joined.isdisjoint(one.what)),
        *_remedies(hosts, "relax", "without {}", _rules),
    )
    return tuple(sorted(found, key=lambda way: (len(way.what), -len(way.hosts)))[:_MOST_REMEDIES])


def _remedies(
    hosts: Iterable[HostInDecision],
    kind: str,
    how: str,
    obstacles: Callable[[HostInDecision], Mapping[str, str]],
) -> Iterator[Remedy]:
    """Hosts with the same obstacles together; these by id with their names."""
    alike: dict[tuple[str, ...], list[Named]] = {}
    names: dict[str, str] = {}
    for decision in hosts:
        if its := obstacles(decision):
            names |= its
            alike.setdefault(tuple(sorted(its)), []).append(decision.host)
    for what, freed in alike.items():
        these = how.format(listed([names[one] for one in what], " and "))
        where = f"host{'s' * (len(freed) > 1)} {listed([host.name for host in freed])}"
        yield Remedy(kind, what, tuple(freed), f"{these}: {where}")


def _moves(decision: HostInDecision) -> Mapping[str, str]:
    """The VMs whose presence alone refuses the host; none if anything else does."""
    found = {reason.vm.id: f"VM {reason.vm.name}" for reason in decision.reasons if reason.vm}
    alone = all(reason.kind == NEGATIVE_PEER_HERE.name and reason.vm for reason in decision.reasons)
    return found if alone else {}


def _rules(decision: HostInDecision) -> Mapping[str, str]:
    groups = {reason.group.id: reason.group.name for reason in decision.reasons if reason.group}
    return groups | {one.unit: f"the rule of {one.unit}" for one in decision.reasons if not one.group}


# -- What the scheduler proxy answered last about a VM, from its record of decisions.
class LastDecisionsDocument(Document, frozen=True, kw_only=True, tag="last_decisions"):
    """What the scheduler proxy answered last about a VM."""

    vm: Named
    decisions: tuple[PastDecision, ...]


def last_decisions(
    snapshot: Snapshot, vm: Vm, record: Path, only: Host | None = None, number: int = 1
) -> LastDecisionsDocument:
    """What came of the last times that the engine asked for a host: of one, or of all it asked about.

    Of the last one the last answer of each method, of more also what lies between them, the oldest first.
    Raises `NoRecord` if the record cannot be read.
    """
    found = list(about(vm.id, record))
    if number == 1:
        last: dict[str, LoggedDecision] = {}
        for decision in found:
            last.pop(decision.method, None)
            if decision.method == FILTERS:  # weights that are older are of another decision
                last.pop(WEIGHTS, None)
            last[decision.method] = decision
        found = list(last.values())
    else:
        begins = [at for at, one in enumerate(found) if one.method in (FILTERS, BALANCE)]
        found = found[begins[-number] :] if len(begins) >= number else found
    return LastDecisionsDocument(
        vm=Named(vm.id, vm.name), decisions=tuple(past_decision(one, snapshot, only) for one in found)
    )


# -- What the engine's own events say of VMs that did not start, and of hosts that its own filters refused.
#: Two notes of one refusal are at most so far apart, in seconds: clocks of engine and proxy may differ.
NEAR_SECONDS = 10.0


class EngineSaid(Record, frozen=True, omit_defaults=False):
    """An event of the engine."""

    #: ISO 8601, by the engine's clock.
    time: str
    code: int
    #: Whether it is about a start, or else about a migration.
    start: bool
    sentence: str


def engine_said(event: EngineEvent) -> EngineSaid:
    from ovirt_placement.engine.events import START_FAILED

    return EngineSaid(time_text(event.time), event.code, event.code in START_FAILED, event.description)


def refusals_of(events: LatestEvents, vm: str | None) -> Iterator[EngineEvent]:
    """The events by which the engine refused starts and migrations, of one VM or all."""
    from ovirt_placement.engine.events import BROKE_OFF

    named = (event for event in events.events if event.vm is not None and vm in (None, event.vm))
    return (event for event in named if event.code not in BROKE_OFF)


def near(events: Iterable[EngineEvent], vm: str, begin: float, end: float) -> Iterator[EngineEvent]:
    """The events about a VM from a little before `begin` until a little after `end`."""
    begin, end = begin - NEAR_SECONDS, end + NEAR_SECONDS
    return (event for event in events if event.vm == vm and begin <= event.time <= end)


def cut_at(events: LatestEvents, since: float) -> str | None:
    """Since when the events are known, where what is older was cut off and is asked about as well."""
    return None if events.since is None or events.since <= since else time_text(events.since)


def cut_text(since: str) -> str:
    return f"The engine's events before {since} were not read: it has more than are read at once."


def said_of_host(said: Iterable[EngineSaid], host: Host) -> str | None:
    """What the engine said of one host, in its words; what it says twice is of several, and so of none."""
    named = re.compile(rf"(?<![\w.-]){re.escape(host.name)}(?!\.?[\w-])")
    for one in said:
        parts = _parts(one.sentence)
        for part in parts:
            if named.search(part) and parts.count(part) == 1:
                return part
    return None


def names_one_for_all(sentence: str) -> bool:
    """Whether an event says the same of several hosts, and names but one of them."""
    parts = _parts(sentence)
    return len(set(parts)) < len(parts)


def _parts(sentence: str) -> Sequence[str]:
    """The engine puts what it says of each host behind the others, with a comma, in brackets."""
    _, opened, rest = sentence.partition("[")
    return [part.strip() for part in rest.partition("]")[0].split(",")] if opened else ()
