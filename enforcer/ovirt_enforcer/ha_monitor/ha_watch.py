"""Watches HA reservations through whole readings of the engine, and reports lost ones."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry, Gauge

from ovirt_enforcer.ha_monitor.ledger import Ledger, due
from ovirt_enforcer.ha_monitor.verdict import ReservationState, ReservationVerdict, judge_all, off, unknown
from ovirt_enforcer.retry_state import RetryState
from ovirt_enforcer.subprocess_call import Call, CallFailed, with_snapshot
from ovirt_placement.config import HaSettings
from ovirt_placement.model import Snapshot

_PREFIX: Final = "ovirt_placement_enforcer_ha"
#: What is not known is neither one nor the other, and no comparison holds of it.
_SAFE: Final = {ReservationState.SAFE: 1.0, ReservationState.UNSAFE: 0.0}


class HaMetrics:
    """The latest verdicts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._safe = Gauge(
            f"{_PREFIX}_safe",
            "1 if all highly available VMs would be started again, 0 if not, NaN if that is not known",
            ["cluster"],
            registry=registry,
        )
        self._unplaced = Gauge(
            f"{_PREFIX}_vms_without_home",
            "Highly available VMs without a home in the failure that is worst",
            ["cluster"],
            registry=registry,
        )
        self._survived = Gauge(
            f"{_PREFIX}_failures_survived",
            "How many hosts may fail at once; at most as many as the cluster is set to",
            ["cluster"],
            registry=registry,
        )
        self._seconds = Gauge(
            f"{_PREFIX}_check_duration_seconds",
            "How long the last check took",
            ["cluster"],
            registry=registry,
        )
        self._reported: set[str] = set()

    def judged(self, verdicts: Collection[ReservationVerdict]) -> None:
        """Report these clusters, and no others."""
        gauges = (self._safe, self._unplaced, self._survived, self._seconds)
        for gone in self._reported - {verdict.name for verdict in verdicts}:
            for gauge in gauges:
                gauge.remove(gone)
        self._reported = {verdict.name for verdict in verdicts}
        for one in verdicts:
            known = one.state is not ReservationState.UNKNOWN
            values = (
                _SAFE.get(one.state, math.nan),
                one.vms_without_home if known else math.nan,
                one.failures_survived,
                one.seconds,
            )
            for gauge, value in zip(gauges, values, strict=True):
                gauge.labels(one.name).set(value)


#: A check that takes longer is ended, and nothing is known.
_LONGEST_CHECK_SECONDS: Final = 120.0
#: For this many times as long as a check took none is made, whatever happens.
_REST: Final = 2.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """What the watch goes by, in seconds."""

    #: For so long a good state, and one that is not known, must have held before it is reported.
    hold: float
    #: Statistics older than this prove nothing.
    statistics: float
    #: The longest pause after a failure.
    pause: float


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is to be judged, and in which epoch of the lease it was read."""

    snapshot: Snapshot
    clusters: tuple[str, ...]
    epoch: int
    #: How old its statistics were, in seconds; None if there were none.
    statistics_age: float | None


@dataclass(frozen=True, slots=True)
class _Standing:
    """The verdict on a cluster, and since when its state is the same."""

    verdict: ReservationVerdict
    since: float


class HaMonitor:
    """Follows the HA reservation of each cluster that has one; for one thread.

    Checks run in a process of their own: here nothing takes longer than a word with the store.
    """

    def __init__(
        self,
        ledger: Ledger,
        metrics: HaMetrics,
        settings: HaSettings,
        limits: WatchLimits,
        *,
        clock: Callable[[], float],
        epoch: Callable[[], int],
        statistics_age: Callable[[], float | None],
        judged: Callable[[Collection[ReservationVerdict]], None] = lambda _: None,
    ) -> None:
        """`epoch` is that of the lease; `statistics_age` is that of the reading that is being shown.

        `judged` is given the verdicts of each check.
        """
        self._ledger = ledger
        self._metrics = metrics
        self._settings = settings
        self._limits = limits
        self._clock = clock
        self._epoch = epoch
        self._statistics_age = statistics_age
        self._report = judged
        self._retry_state = RetryState("HA watch")
        #: What was read last and is not judged yet, and what is being judged, since when.
        self._next: _Reading | None = None
        self._judged: _Reading | None = None
        self._call: Call[tuple[ReservationVerdict, ...]] | None = None
        self._began = 0.0
        self._rested = 0.0
        #: Of the engine, as they were read last.
        self._clusters: frozenset[str] = frozenset()
        self._standing: dict[str, _Standing] = {}
        self._stood_in = 0

    def look(self, snapshot: Snapshot) -> None:
        """Take a whole reading; it is judged as soon as the check before it is done."""
        watched = tuple(cluster.id for cluster in snapshot.clusters if cluster.ha_reservation)
        self._next = _Reading(snapshot, watched, self._epoch(), self._statistics_age())
        self._clusters = frozenset(snapshot.cluster_by_id)
        self.tend()

    def tend(self) -> None:
        """Go on with what can be done now; what fails is logged and done later."""
        if self._retry_state.due > self._clock():
            return
        try:
            self._collect()
            self._begin()
            self._announce()
        except Exception as error:  # the enforcer has other work, too
            self._retry_state.fail(error, self._clock(), self._limits.pause)
        else:
            self._retry_state.recover()

    def answers(self) -> list[Connection]:
        """What can be waited for: ready once a check is done."""
        return [] if self._call is None or self._call.answer is None else [self._call.answer]

    def close(self) -> None:
        """End what is under way."""
        if self._call is not None:
            self._call.cancel()

    def _begin(self) -> None:
        """Have the latest reading judged, unless the check before it goes on or was costly."""
        reading = self._next
        if reading is None or self._call is not None or self._clock() < self._rested:
            return
        self._next, age = None, reading.statistics_age
        if not reading.clusters:
            self._take(reading, ())
        elif age is None or age > self._limits.statistics:
            why = "there are no statistics yet" if age is None else f"the statistics are {age:.0f} s old"
            self._take(reading, (unknown(reading.snapshot, cluster, why) for cluster in reading.clusters))
        else:
            encoded, question = msgspec.msgpack.encode(reading.snapshot), (reading.clusters, self._settings)
            self._call = with_snapshot(judge_all, encoded, question, _LONGEST_CHECK_SECONDS)
            self._judged, self._began = reading, self._clock()

    def _collect(self) -> None:
        """Take what a check came to."""
        call, reading = self._call, self._judged
        if call is None or reading is None or not call.over():
            return
        self._call = None
        try:
            verdicts = call.result()
            busy = sum(verdict.seconds for verdict in verdicts)
        except CallFailed as error:
            _log.warning("HA watch: %s", error)
            verdicts = tuple(unknown(reading.snapshot, one, str(error)) for one in reading.clusters)
            busy = self._clock() - self._began
        self._rested = self._clock() + _REST * busy
        self._take(reading, verdicts)

    def _take(self, reading: _Reading, verdicts: Iterable[ReservationVerdict]) -> None:
        """Take verdicts on all clusters that are watched; those of another epoch say nothing any more."""
        if reading.epoch != self._epoch():
            return
        if self._stood_in != reading.epoch:
            self._standing, self._stood_in = {}, reading.epoch
        found = {verdict.cluster: verdict for verdict in verdicts}
        self._metrics.judged(tuple(found.values()))
        for cluster, name in self._ledger.open_clusters().items():
            found.setdefault(cluster, off(cluster, name))
        self._standing = {cluster: self._stands(verdict) for cluster, verdict in found.items()}
        self._report(tuple(found.values()))

    def _stands(self, verdict: ReservationVerdict) -> _Standing:
        before = self._standing.get(verdict.cluster)
        if before is None or before.verdict.state is not verdict.state:
            return _Standing(verdict, self._clock())
        return _Standing(verdict, before.since)

    def _announce(self) -> None:
        """Write down what is to be said by now, and have said what was written down."""
        if self._stood_in == self._epoch():
            for cluster, one in self._standing.items():
                held = self._clock() - one.since
                kind = due(self._ledger.said(cluster), one.verdict.state, held, self._limits.hold)
                if kind is not None:
                    self._ledger.write(kind, one.verdict)
        self._ledger.deliver(self._clusters)
