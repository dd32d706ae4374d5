"""What the scheduler proxy answered last about a VM, from its record of decisions: one line of JSON each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import count
from pathlib import Path

import msgspec

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.local_proxy import configuration_of, section_of
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import Named, named_host, named_hosts
from ovirt_placement.model.record import Record
from ovirt_service.errors import UserError

FILTERS, WEIGHTS, BALANCE = "runFilters", "runCostFunctions", "runLoadBalancing"


class LoggedDecision(msgspec.Struct, frozen=True):
    """One answer of the proxy."""

    #: Seconds since 1970.
    time: float
    #: The id that the proxy's log knows the call by.
    request: str
    method: str
    hosts: tuple[str, ...]
    #: For each host that fell, the units that dropped it.
    fallen: Mapping[str, tuple[str, ...]]
    #: By unit, in the order of the hosts; lower is better.
    weights: Mapping[str, tuple[int, ...]]
    #: The VM to move, and where to.
    balance: tuple[str, tuple[str, ...]] | None
    #: What units that failed, or refused the VM, had to say.
    failure_sentences: Mapping[str, str]
    seconds: float
    #: By unit: how old the state was that it decided on, in seconds, where it says so.
    state_age_seconds: Mapping[str, float] = {}


class HostInDecision(Record, frozen=True, omit_defaults=False):
    """What the proxy's units said of one host."""

    host: Named
    #: Names of the units that dropped it.
    dropped_by: tuple[str, ...]
    #: By unit; lower is better.
    weights: Mapping[str, int]


class PastDecision(Record, frozen=True, omit_defaults=False):
    """One answer of the proxy."""

    #: ISO 8601.
    time: str
    #: The id that the proxy's log knows the call by.
    request: str
    method: str
    seconds: float
    #: By unit: how old the state was that it decided on, in seconds, where it says so.
    state_age_seconds: Mapping[str, float]
    sentence: str
    #: Of weights, the units that gave them.
    weighed_by: tuple[str, ...]
    hosts: tuple[HostInDecision, ...]
    #: Of a balance, the hosts that the VM is to move to.
    move_to: tuple[Named, ...]
    #: What units that failed, or refused the VM, had to say.
    failures: Mapping[str, str]


class LastDecisionsDocument(Document, frozen=True, kw_only=True, tag="last_decisions"):
    """What the scheduler proxy answered last about a VM."""

    vm: Named
    decisions: tuple[PastDecision, ...]


def last_decisions(
    snapshot: Snapshot, vm: Vm, record: Path, only: Host | None = None
) -> LastDecisionsDocument:
    """The last answer of each method about a VM: of one host, or of all that the engine asked about.

    Raises `UserError` if the record cannot be read.
    """
    found = tuple(_past(decision, snapshot, only) for decision in last_about(vm.id, record))
    return LastDecisionsDocument(vm=Named(vm.id, vm.name), decisions=found)


def _past(decision: LoggedDecision, snapshot: Snapshot, only: Host | None) -> PastDecision:
    move_to = named_hosts(decision.balance[1], snapshot) if decision.balance else ()
    moment = datetime.fromtimestamp(decision.time).astimezone()
    return PastDecision(
        time=moment.isoformat(sep=" ", timespec="milliseconds"),
        request=decision.request,
        method=decision.method,
        seconds=decision.seconds,
        state_age_seconds=decision.state_age_seconds,
        sentence=_summary(decision, move_to),
        weighed_by=tuple(decision.weights),
        hosts=tuple(
            HostInDecision(
                named_host(host, snapshot),
                decision.fallen.get(host, ()),
                {unit: weights[at] for unit, weights in decision.weights.items()},
            )
            for at, host in enumerate(decision.hosts)
            if only is None or host == only.id
        ),
        move_to=move_to,
        failures=decision.failure_sentences,
    )


def _summary(decision: LoggedDecision, move_to: Iterable[Named]) -> str:
    if decision.method == FILTERS:
        return f"{len(decision.hosts) - len(decision.fallen)} of {len(decision.hosts)} hosts passed"
    if decision.balance is not None:
        return "it is to move to " + " or ".join(host.name for host in move_to)
    return "weights, of which the lowest is best"


# -- in words


def lines(found: PastDecision) -> Iterator[str]:
    """When it was answered, how long that took, what it came to, and what units had to say."""
    oldest = max(found.state_age_seconds.values(), default=None)
    age = "" if oldest is None else f", on a state {oldest:.1f} s old"
    yield (
        f"{found.time} {found.method} ({found.seconds * 1e3:.1f} ms{age}, request {found.request}):"
        f" {found.sentence}"
    )
    for unit, sentence in found.failures.items():
        yield f"{unit} {sentence}"


def headers(found: PastDecision) -> tuple[str, ...]:
    """Of the table of its hosts; none, if it is not about hosts."""
    if found.method == FILTERS:
        return ("host", "verdict", "by")
    return ("host", *found.weighed_by) if found.method == WEIGHTS else ()


def rows(found: PastDecision) -> list[tuple[object, ...]]:
    """What was said of each host."""
    if found.method == WEIGHTS:
        return [(one.host.name, *one.weights.values()) for one in found.hosts]
    return [
        (one.host.name, "dropped" if one.dropped_by else "left", ", ".join(one.dropped_by))
        for one in found.hosts
    ]


# -- the proxy's record


def record_of(engine: str) -> Path:
    """Where the proxy of an engine records its decisions. Raises `UserError` if it does not."""
    recorded = (section_of(engine, "decisions") or {}).get("file")
    if not recorded:
        raise UserError(
            f"the proxy records no decisions: set file in section [decisions] of {configuration_of(engine)}"
            " (to /var/log/ovirt-scheduler-proxy/decisions.jsonl, say) and restart it, or name its record"
            " with --decisions"
        )
    return Path(recorded)


def last_about(vm: str, record: Path) -> tuple[LoggedDecision, ...]:
    """The last answer of each method about a VM, the oldest first; raises `UserError`.

    Weights that are older than the last filters are of another decision, and left out.
    """
    found: dict[str, LoggedDecision] = {}
    for file in _files(record):
        older = {method: each for method, each in _last_in(file, vm).items() if method not in found}
        found = older | found
        if len(found) == len((FILTERS, WEIGHTS, BALANCE)):
            break
    methods = list(found)
    if FILTERS in found and WEIGHTS in methods[: methods.index(FILTERS)]:
        del found[WEIGHTS]
    return tuple(found.values())


def _files(record: Path) -> Iterator[Path]:
    """The record and those that made way for it, the newest first."""
    yield record
    for number in count(1):
        file = record.with_name(f"{record.name}.{number}")
        if not file.exists():
            return
        yield file


def _last_in(file: Path, vm: str) -> dict[str, LoggedDecision]:
    """The last decision of each method about a VM in one file, in the order of the file."""
    name = msgspec.json.encode(vm)
    marks = b'"vm":' + name, b'"balance":[' + name
    found: dict[str, LoggedDecision] = {}
    try:
        with file.open("rb") as lines:
            for line in lines:
                # What is being written just now has no end yet.
                if any(mark in line for mark in marks) and line.endswith(b"\n"):
                    decision = msgspec.json.decode(line, type=LoggedDecision)
                    found.pop(decision.method, None)
                    found[decision.method] = decision
    except OSError as error:
        raise UserError(f"{file}: cannot read the record of decisions: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise UserError(f"{file}: is no record of the proxy's decisions: {error}") from None
    return found
