"""How the enforcer is, for those who watch it: metrics, /healthz, and the trends of the history."""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Set
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import msgspec
from msgspec.structs import replace

from ovirt_enforcer.log import RetryState
from ovirt_enforcer.service.leader import Leader
from ovirt_enforcer.watchers.verdict import ReservationState, ReservationVerdict
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.rules.catalogue import Violation
from ovirt_placement.store.enforcer.intents import Intent, IntentState
from ovirt_placement.store.enforcer.leader import Cycle, CycleStore
from ovirt_placement.store.enforcer.observations import SampleStore
from ovirt_service.daemon import Progress
from ovirt_service.errors import UserError
from ovirt_service.http.connection import Response
from ovirt_service.metrics import Instruments

_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_HARDNESS = {True: "hard", False: "soft"}


#: What is shown of each verdict, by the name of its gauge.
_HA_GAUGES: Final = {
    "ha_safe": "1 if all highly available VMs would be started again, 0 if not, NaN if that is not known",
    "ha_vms_without_home": "Highly available VMs without a home in the failure that is worst",
    "ha_failures_survived": "How many hosts may fail at once; at most as many as the cluster is set to",
    "ha_check_duration_seconds": "How long the last check took",
}


class EnforcerMetrics(Instruments):
    """Counts, times and states; each is moved where it happens."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, engine: str = "") -> None:
        super().__init__("ovirt_placement_enforcer", engine)
        self._clock = clock
        self._read_at = -math.inf
        #: What is reported each cluster's violations: family and hardness, by the cluster's name.
        self._violated: dict[str, set[tuple[str, str]]] = {}
        self.cycles = self.counter("cycles", "Cycles by result: ok or failed", "result")
        self.cycle_seconds = self.histogram("cycle_duration_seconds", "Time of a cycle", buckets=_BUCKETS)
        self.plans = self.counter(
            "plans", "Plans made; proven: none repairs more, or as much with less", "proven"
        )
        self.planned = self.gauge(
            "planned_migrations", "Migrations of the plan made last that have not begun", "cluster"
        )
        self.pending = self.gauge("pending_intents", "Migrations that are meant and whose end is not known")
        self.migrations = self.counter("migrations", "Migrations that have ended, by result", "result")
        self.closed = self.counter(
            "gate_closures", "Steps and clusters that had to wait, by the closed gate", "gate"
        )
        self.predicted = self.counter("repairs_predicted", "Violated rules that ended steps were to repair")
        self.achieved = self.counter(
            "repairs_achieved", "Violated rules of ended steps that are satisfied since"
        )
        self.migration_seconds = self.histogram(
            "migration_duration_seconds",
            "Time of a migration that succeeded, from before its request",
            buckets=(*_BUCKETS, 300.0, 600.0, 1800.0),
        )
        self.violations = self.gauge(
            "violations",
            "Rules that were violated when the cluster was last checked",
            *("cluster", "family", "hardness"),
        )
        age = self.gauge("snapshot_age_seconds", "Time since the last reading of the engine began")
        age.set_function(lambda: self._clock() - self._read_at)
        self._read_when = self.gauge(
            "snapshot_timestamp_seconds",
            "When the last reading of the engine began, in seconds since 1970; 0 before any",
        )
        self.notifications = self.counter(
            "notifications", "Notices by channel, and what became of them", "channel", "result"
        )
        self.unmatched_names = self.gauge(
            "unmatched_names", "Names of the configuration, rules, keys and policies that match nothing"
        )
        self.mode = self.gauge("mode", "1 for the mode that is configured, 0 for the others", "mode")
        self.leader = self.gauge("leader", "1 while this process leads, 0 while it watches who does")
        self.epoch = self.gauge("lease_epoch", "The epoch in which this process leads; 0 while it does not")
        self._of_ha = [self.gauge(name, text, "cluster") for name, text in _HA_GAUGES.items()]
        self._judged: set[str] = set()

    def notified(self, channel: str, result: str) -> None:
        self.notifications.labels(channel, result).inc()

    def read(self, began: float) -> None:
        """Report that a snapshot is known whose reading began then, by the clock."""
        self._read_at = began
        self._read_when.set(time.time() - (self._clock() - began))

    def ended(self, intent: Intent, result: str = "") -> None:
        """Count a migration whose end is known, by its state or by a closer word for it."""
        self.migrations.labels(result or intent.state.value).inc()
        if intent.state is IntentState.DONE:
            self.migration_seconds.observe(max(0.0, intent.updated - intent.created))

    def record_violations(self, name: str, violations: Iterable[Violation]) -> None:
        found = Counter((violation.constraint.family, _HARDNESS[violation.hard]) for violation in violations)
        known = self._violated.setdefault(name, set())
        known.update(found)
        for family, hardness in known:
            self.violations.labels(name, family, hardness).set(found[family, hardness])

    def keep_only(self, clusters: Set[str]) -> None:
        for gone in self._violated.keys() - clusters:
            for family, hardness in self._violated.pop(gone):
                self.violations.remove(gone, family, hardness)
            self.planned.remove(gone)

    def forget(self) -> None:
        """Show nothing of clusters and migrations: another process leads, or none."""
        self.keep_only(set())
        self.judged(())
        for gauge in (self.pending, self.unmatched_names):
            gauge.set(0)

    def judged(self, verdicts: Collection[ReservationVerdict]) -> None:
        """Report the HA reservations of these clusters, and of no others."""
        before, self._judged = self._judged, {verdict.name for verdict in verdicts}
        for gone in before - self._judged:
            for gauge in self._of_ha:
                gauge.remove(gone)
        for one in verdicts:
            # What is not known is neither one nor the other, and no comparison holds of it.
            known = 1.0 if one.state is not ReservationState.UNKNOWN else math.nan
            safe = float(one.state is ReservationState.SAFE)
            values = (safe * known, one.vms_without_home * known, one.failures_survived, one.seconds)
            for gauge, value in zip(self._of_ha, values, strict=True):
                gauge.labels(one.name).set(value)


def engine_is_away(error: Exception | None) -> bool:
    """Whether a cycle failed since nothing was to be had from the engine, or is known of it."""
    return isinstance(error, EngineAway | NoSnapshot)


_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Cycles:
    """Whether engine and store work, as the last cycle found that asked them: for a page, and the store."""

    store: CycleStore
    metrics: EnforcerMetrics
    leader: Leader
    progress: Progress
    clock: Callable[[], float]
    #: After failures it waits so long at the most.
    longest_pause: float
    epoch: Callable[[], int]
    #: What they failed of when they were asked last; None if they answered.
    failure: Exception | None = field(default=None, init=False)
    _ended_at: float | None = field(default=None, init=False)
    _written: Cycle | None = field(default=None, init=False)
    _retry_state: RetryState = field(default_factory=lambda: RetryState("engine and store"), init=False)

    @property
    def pause(self) -> float:
        """Seconds from now until both may be asked again."""
        return self._retry_state.due - self.clock()

    def failed(self, error: Exception) -> None:
        self.failure = error
        self._retry_state.fail(error, self.clock(), self.longest_pause)
        self._count("failed")
        self.write_down(None)

    def ended(self, *, engine_asked: bool) -> None:
        """One has ended well. If the engine was away, it is so until a cycle has asked it."""
        if engine_asked or not engine_is_away(self.failure):
            self.failure = None
            self._retry_state.recover()
        self._count("ok")

    def followed(self) -> None:
        """One has ended well in which another leads: whether the engine is away is found by that one."""
        if engine_is_away(self.failure):
            self._retry_state.forget_failure()
        self.ended(engine_asked=True)

    def write_down(self, found: Callable[[], Cycle] | None, failing: str | None = None) -> None:
        """Write down a cycle that looked at the engine or failed, or the first one after one that failed.

        `found` gives what it found, if it looked; `failing` is what a cluster fails of. A store that does not
        answer is reported by the cycle.
        """
        last, error = self._written or Cycle(epoch=0, error=None), self._error or failing
        if found is None and self.failure is None and last.error == error:
            return
        try:
            cycle = replace(last if found is None else found(), epoch=self.epoch(), error=error)
            self.store.record(cycle)
        except UserError as away:
            _log.debug("the cycle is not written down: %s", away)
        else:
            self._written = cycle

    def page(self) -> Response:
        """Answer 200 while work gets on, be it of a leader or of a follower, and 503 once it hangs.

        An engine or a store that is away is reported, and is no reason to start the process again.
        """
        epoch, at, hangs = self.leader.epoch, self._ended_at, self.progress.hangs
        state = {
            "status": "hangs" if hangs else "ok",
            "role": "leader" if epoch else "follower",
            "leader": self.leader.known,
            "epoch": epoch,
            "last_cycle_seconds_ago": None if at is None else round(self.clock() - at, 3),
            "last_cycle_error": self._error,
            # One that follows asks no engine.
            "engine_reachable": None if at is None or not epoch else not engine_is_away(self.failure),
        }
        status = HTTPStatus.SERVICE_UNAVAILABLE if hangs else HTTPStatus.OK
        return Response(msgspec.json.encode(state) + b"\n", "application/json", status)

    @property
    def _error(self) -> str | None:
        return None if self.failure is None else str(self.failure) or type(self.failure).__name__

    def _count(self, result: str) -> None:
        self.metrics.cycles.labels(result).inc()
        self._ended_at = self.clock()


#: What is no worse than before is written again after this, and in each hour: what lasts is of both.
_AGAIN_SECONDS: Final = 900.0
#: Numbers that are the worse the higher they are.
_Badness = tuple[int, ...]


@dataclass(eq=False)
class Sampler:
    """Writes at once what is worse than what it wrote last in the hour, and the rest every 15 minutes.

    For one thread.
    """

    store: SampleStore
    clock: Callable[[], float]
    #: That of the lease in which is written.
    epoch: Callable[[], int]
    #: What was written last of what, in which epoch, and until when by the clock that is enough.
    _written: dict[tuple[str, ...], tuple[_Badness, int, float]] = field(default_factory=dict, init=False)

    def record_violations(self, cluster: str, name: str, violations: Iterable[Violation]) -> None:
        """Take the rules that a cluster violates. Raises what stores raise."""
        hardness = [violation.hard for violation in violations]
        hard, soft = hardness.count(True), hardness.count(False)
        self._write(cluster, name, (hard, soft), hard=hard, soft=soft)

    def judged(self, verdicts: Iterable[ReservationVerdict]) -> None:
        """Take verdicts on HA reservations, those that say something. Raises what stores raise."""
        for verdict in verdicts:
            if verdict.state in (ReservationState.SAFE, ReservationState.UNSAFE):
                failures, survived = verdict.failures, verdict.failures_survived
                lost = verdict.vms_without_home
                seen = {"ha_failures": failures, "ha_survived": survived, "ha_not_restarted": lost}
                self._write(verdict.cluster, verdict.name, (failures - survived, lost), **seen)

    def _write(self, cluster: str, name: str, badness: _Badness, **seen: int) -> None:
        """Record it if it is worse than what was written last, or that is old or of another epoch."""
        what = cluster, *seen
        before, epoch, until = self._written.get(what, ((), 0, -math.inf))
        old = epoch != self.epoch() or self.clock() >= until
        if old or any(now > then for now, then in zip(badness, before, strict=True)):
            left = self.store.record(cluster, name, **seen)
            self._written[what] = badness, self.epoch(), self.clock() + min(left, _AGAIN_SECONDS)
