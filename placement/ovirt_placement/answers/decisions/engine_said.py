"""What the engine's own events say of VMs that did not start, and of hosts that its own filters refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ovirt_placement.answers.decisions.past import time_text
from ovirt_placement.engine.reading.events import START_FAILED, EngineEvent, LatestEvents
from ovirt_placement.model import Host
from ovirt_placement.model.record import Record

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
    return EngineSaid(time_text(event.time), event.code, event.code in START_FAILED, event.description)


def near(events: Iterable[EngineEvent], vm: str, begin: float, end: float) -> Iterator[EngineEvent]:
    """The events about a VM from a little before `begin` until a little after `end`."""
    return (
        event
        for event in events
        if event.vm == vm and begin - NEAR_SECONDS <= event.time <= end + NEAR_SECONDS
    )


def cut_at(events: LatestEvents, since: float) -> str | None:
    """Since when the events are known, where what is older was cut off and is asked about as well."""
    return None if events.since is None or events.since <= since else time_text(events.since)


def cut_text(since: str) -> str:
    return f"The engine's events before {since} were not read: it has more than are read at once."


def of_host(said: Iterable[EngineSaid], host: Host) -> str | None:
    """What the engine said of one host, in its own language: the part of a sentence with the host's name.

    What it says twice is of several hosts, all under the name of one, and so of none.
    """
    named = re.compile(rf"(?<![\w.-]){re.escape(host.name)}(?![\w-])")
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
