"""What a storm met: how long it took, what units were asked and failed, and where the VMs ended."""

from __future__ import annotations

import math
import time
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ovirt_placement.inventory.protocol import NoAnswer, NoService, ask_moments
from ovirt_placement.inventory.publication import Moments, now
from tests.integration.storms.clients import Burst
from tests.integration.storms.cluster import Storm
from tests.integration.storms.stage import PROXY, Stage
from tests.repeating import repeating

#: Events of an engine that cannot reach the proxy, and that heard of a unit that failed.
_UNREACHABLE, _UNIT_FAILED = 9920, 9921
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Calls:
    """Calls of filters and weights, as the proxy recorded them."""

    seconds: tuple[float, ...] = ()
    #: How many units failed, by cause; and in how many calls any did. A refusal is a filter's own will.
    causes: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0
    #: How old what the inventory had published was when each call was answered.
    ages: tuple[float, ...] = ()

    def percentile(self, percent: float) -> float:
        return _percentile(self.seconds, percent)

    def age(self, percent: float) -> float:
        return _percentile(self.ages, percent)


@dataclass(frozen=True)
class Figures:
    """All of one storm."""

    storm: Storm
    burst: Burst
    hosts: Mapping[str, str | None]
    calls: Calls = field(default_factory=Calls)
    unreachable: int = 0
    unit_failures: tuple[str, ...] = ()

    @property
    def torn_chains(self) -> tuple[int, ...]:
        """On how many hosts each hard chain is that is on several."""
        return tuple(count for count in self.storm.hosts_of_chains(self.hosts) if count > 1)

    @property
    def violated(self) -> int:
        return self.storm.violated(self.hosts)


def of(storm: Storm, burst: Burst, stage: Stage, ages: Sequence[tuple[float, float]] = ()) -> Figures:
    """Take the figures at the end of a storm; this stops the proxy, whose record is whole then."""
    hosts, unreachable, failures = stage.hosts(), stage.events(_UNREACHABLE), stage.events(_UNIT_FAILED)
    stage.stop(PROXY)
    calls = calls_of(stage.decisions(), ages)
    return Figures(storm, burst, hosts, calls, len(unreachable), tuple(failures))


@contextmanager
def watching_ages(directory: Path) -> Iterator[list[tuple[float, float]]]:
    """Note now and again how old what is published is, with the time of the look."""
    seen: list[tuple[float, float]] = []

    def look() -> None:
        with suppress(NoAnswer, NoService):
            seen.append((time.time(), now() - Moments(*ask_moments(directory, 5.0)).as_of))

    with repeating(look, every=_LOOK_SECONDS):
        yield seen


def calls_of(records: Sequence[Mapping[str, Any]], ages: Sequence[tuple[float, float]]) -> Calls:
    """Read records of the proxy; `ages` are those of what was published, with the times of the looks."""
    failures = [[cause for cause in record["failures"].values() if cause != "refused"] for record in records]
    return Calls(
        tuple(record["seconds"] for record in records),
        Counter(cause for causes in failures for cause in causes),
        sum(map(bool, failures)),
        tuple(_age_at(record["time"], ages) for record in records) if ages else (),
    )


def _age_at(moment: float, ages: Sequence[tuple[float, float]]) -> float:
    return ages[max(0, bisect(ages, (moment, math.inf)) - 1)][1]


def _percentile(values: Sequence[float], percent: float) -> float:
    """The nearest rank; not a number of no values."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]
