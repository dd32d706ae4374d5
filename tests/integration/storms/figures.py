"""What a storm met: how long it took, what units were asked and failed, and where the VMs ended."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.integration.storms.clients import Burst, start_all
from tests.integration.storms.cluster import Storm
from tests.integration.storms.stage import PROXY, Stage, with_ours

#: Events of an engine that cannot reach the proxy, and that heard of a unit that failed.
_UNREACHABLE, _UNIT_FAILED = 9920, 9921


@dataclass(frozen=True)
class Calls:
    """Calls of filters and weights, as the proxy recorded them."""

    seconds: tuple[float, ...] = ()
    #: How many units failed, by cause; and in how many calls any did. A refusal is a filter's own will.
    causes: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0

    def percentile(self, percent: float) -> float:
        """The nearest rank; not a number of no calls."""
        ordered = sorted(self.seconds)
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else math.nan


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


def of(storm: Storm, burst: Burst, stage: Stage) -> Figures:
    """Take the figures at the end of a storm; this stops the proxy, whose record is whole then."""
    hosts, unreachable, failures = stage.hosts(), stage.events(_UNREACHABLE), stage.events(_UNIT_FAILED)
    stage.processes.stop(PROXY)
    calls = calls_of(stage.decisions())
    return Figures(storm, burst, hosts, calls, len(unreachable), tuple(failures))


def calls_of(records: Sequence[Mapping[str, Any]]) -> Calls:
    """Read records of the proxy."""
    failures = [[cause for cause in record["failures"].values() if cause != "refused"] for record in records]
    return Calls(
        tuple(record["seconds"] for record in records),
        Counter(cause for causes in failures for cause in causes),
        sum(map(bool, failures)),
    )


#: How long the clients of a storm wait for their answers.
PATIENCE_SECONDS = 120.0


def run_with_ours(
    storm: Storm,
    threads: int,
    patience: float = PATIENCE_SECONDS,
    *,
    max_age: float | None = None,
) -> Figures:
    """Run a storm with proxy, units and inventory.

    Units want a newer snapshot than one that is `max_age` seconds old (None: as configured unless reported).
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        with_ours(Path(folder), storm.state, threads=threads, max_age=max_age) as stage,
    ):
        burst = start_all(stage.url, stage.token, storm.starts, patience=patience)
        return of(storm, burst, stage)
