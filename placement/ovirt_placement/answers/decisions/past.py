"""One answer of the scheduler proxy with names, as data and in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from ovirt_placement.answers.decisions.reasons import PastReason, reasons_of
from ovirt_placement.answers.decisions.record import FILTERS, WEIGHTS, LoggedDecision
from ovirt_placement.model import Host, Snapshot
from ovirt_placement.model.names import Named, named_host, named_hosts
from ovirt_placement.model.record import Record


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


def past(decision: LoggedDecision, snapshot: Snapshot, only: Host | None = None) -> PastDecision:
    """A decision about one host, or all that the engine asked about; `snapshot` has the names."""
    move_to = named_hosts(decision.balance[1], snapshot) if decision.balance else ()
    reasons = reasons_of(decision, snapshot)
    return PastDecision(
        time=time_text(decision.time),
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
                reasons.get(host, ()),
                {unit: weights[at] for unit, weights in decision.weights.items()},
            )
            for at, host in enumerate(decision.hosts)
            if only is None or host == only.id
        ),
        move_to=move_to,
        failures=decision.failure_sentences,
    )


def time_text(seconds: float) -> str:
    """Seconds since the epoch in the time of this machine's zone."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(sep=" ", timespec="milliseconds")


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
        return ("host", "verdict", "why", "by")
    return ("host", *found.weighed_by) if found.method == WEIGHTS else ()


def rows(found: PastDecision) -> list[tuple[object, ...]]:
    """What was said of each host."""
    if found.method == WEIGHTS:
        return [(one.host.name, *one.weights.values()) for one in found.hosts]
    return [
        (
            one.host.name,
            "dropped" if one.dropped_by else "passed",
            "\n".join(reason.sentence for reason in one.reasons),
            "\n".join(reason.unit for reason in one.reasons),
        )
        for one in found.hosts
    ]
