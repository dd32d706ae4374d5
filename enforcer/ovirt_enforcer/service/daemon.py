"""Reads every cluster, for ever: follow what is under way, read what is due, reconcile it.

No state that must survive: the engine holds what is true and the store what was meant, so it may be killed at
any point. What fails in one cluster is logged and tried again later; the others go on.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from msgspec.structs import replace

from ovirt_enforcer.actions.recent_moves import REACH_SECONDS
from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.log import LogText, RetryState, report
from ovirt_enforcer.service.cluster import ClusterWork
from ovirt_enforcer.service.reading import Parts, Reading, changed, reported
from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.model import Snapshot
from ovirt_placement.store.enforcer.intents import Intent
from ovirt_placement.store.sql.access import LeaseLost
from ovirt_placement.store.sql.database import StoreAway


class Watcher(Protocol):
    """Is shown whole readings of the engine."""

    def observe(self, snapshot: Snapshot) -> None: ...


#: For so long after a reading.
_FRESH_SECONDS: Final = 3.0
#: A reading that takes this many times as long as the one before, and so much longer, may have been
#: interrupted: its first part is old. Another one that takes as long shows that the engine is slow.
_SLOWER: Final = 2.0
_SLOWER_SECONDS: Final = 5.0
#: Two readings of a cluster are this many seconds apart, and this many times what one takes.
_LEAST_PAUSE_SECONDS = 1.0
_LEAST_PAUSE_TURNS = 5.0
#: This share of its interval earlier a cluster is looked at where another one is due.
_EARLY: Final = 0.2


class Pace:
    """When the engine was read last, and for how long: that says when it may be read again, and acted on."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._turn_ended_at = -math.inf
        #: What the last reading took, and the whole turn with what came of it.
        self._last_seconds = self.turn_seconds = 0.0

    def end_turn(self, began: float) -> None:
        self._turn_ended_at, self.turn_seconds = self._clock(), self._clock() - began

    def fresh_until(self, began: float) -> float:
        """Until when steps may be begun on a reading that has ended now, in seconds of the clock."""
        ended = self._clock()
        before, self._last_seconds = self._last_seconds, ended - began
        usual = self._last_seconds <= _SLOWER * before + _SLOWER_SECONDS
        return (ended if usual else began) + _FRESH_SECONDS

    @property
    def earliest(self) -> float:
        """When the next look may be at the earliest, in seconds of the clock."""
        pause = max(_LEAST_PAUSE_SECONDS, _LEAST_PAUSE_TURNS * self.turn_seconds)
        return max(self._clock(), self._turn_ended_at + pause)


#: For so long what was done is remembered at the least, and so often what is older is dropped.
_REMEMBERED_SECONDS = 30 * 24 * 3600.0
_FORGETTING_SECONDS = 3600.0


@dataclass(eq=False)
class Daemon:
    """The enforcer of all clusters of one engine."""

    #: Gives a snapshot whose reading began after the call.
    read: Callable[[], Snapshot]
    parts: Parts
    watchers: Sequence[Watcher] = ()
    #: Called in each cycle, to log what people did.
    people: Callable[[], None] = lambda: None
    _last_reading: Reading | None = field(default=None, init=False)
    _clusters: dict[str, ClusterWork] = field(default_factory=dict, init=False)
    _latest: Snapshot | None = field(default=None, init=False)
    #: What people had said of migrations in the last cycle.
    _said: Hashable = field(default=None, init=False)
    _forgot_at: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        self._settings, self._clock = self.parts.settings, self.parts.clock
        self._store, self._runs = self.parts.stores.intents, self.parts.maintenance
        self._leader, self._metrics, self._cycles = self.parts.leader, self.parts.metrics, self.parts.cycles
        self._watchers = [(watcher, RetryState(type(watcher).__name__)) for watcher in self.watchers]
        self._pace = Pace(self._clock)

    def run(self, sleep: Callable[[float], bool]) -> None:
        """Cycle until `sleep`, given the seconds until something is due, says that it is time to stop."""
        while not sleep(self.cycle()):
            pass
        self._forget_all()

    @property
    def due(self) -> bool:
        return self._runs.due <= self._clock() or any(
            work.retry_state.due <= self._clock() for work in self._clusters.values()
        )

    def cycle(self) -> float:
        """Do what is due; return the seconds until something will be."""
        try:
            with self._metrics.cycle_seconds.time():
                pause = self._cycle()
        except Exception as error:  # no failure may end the daemon
            self._cycles.failed(error)
            self.parts.recorder.failed(error)
            return min(self._cycles.pause, self._leader.seconds_until_due())
        if not self.parts.epoch:
            self._cycles.followed()
            return pause
        last = self._last_reading
        self._cycles.ended(engine_asked=last is not None)
        if self.parts.goes_on():  # what is about to stop has looked at nothing
            waiting = {vm for work in self._clusters.values() for vm in work.last_plan.waiting}
            failing = (work.retry_state.failure for work in self._clusters.values())
            found = None if last is None else partial(last.cycle, waiting)
            self._cycles.write_down(found, next(filter(None, failing), None))
        return pause

    def happened(self, events: Iterable[EngineEvent]) -> None:
        """Look at once at the clusters that these concern."""
        if self._latest is not None:
            self._wake(reported(events, self._latest, self.parts.moves.ours))

    def published(self, snapshot: Snapshot) -> None:
        """Look at once at the clusters in which this differs from what was read last."""
        if self._latest is not None:
            self._wake(changed(self._latest, snapshot, self._ours_now()))
            self._latest = snapshot

    def wake_all(self) -> None:
        self._wake(self._clusters)

    def _cycle(self) -> float:
        self._last_reading = None
        if not self._leader.tend():
            self._lead(0)
            return self._leader.seconds_until_due()
        self._lead(self._leader.epoch)
        intents = self._store.open_intents()
        self._metrics.pending.set(len(intents))
        self.parts.executor.following.keep_only(intents)
        self._follow(intents)
        self.people()
        said, self._said = self._said, self.parts.memory.words()
        if said is not None and said != self._said:
            self.wake_all()
        self._runs.read()
        for cluster, work in self._clusters.items():
            self._try_for_cluster(cluster, work.collect)
        if (self.due or not self._clusters) and self.parts.goes_on():
            self._read_and_reconcile()
        return self._pause()

    def _lead(self, epoch: int) -> None:
        """Begin again where another may have led meanwhile; 0 to lead no more."""
        if epoch != self.parts.epoch:
            self._forget_all()
            self.parts.epoch = epoch

    def _forget_all(self) -> None:
        for work in self._clusters.values():
            work.leave()
        self._clusters.clear()
        self._latest = None
        self._runs.leave()
        self.parts.recorder.forget()

    def _follow(self, intents: Sequence[Intent]) -> None:
        """Look at what is under way, but where that failed a moment ago; take note of what came of it."""
        if self.parts.goes_on():
            resting = {
                cluster
                for cluster, work in self._clusters.items()
                if work.retry_state.failing and work.retry_state.due > self._clock() and not work.planning
            }
            due = [intent for intent in intents if intent.cluster not in resting]
            self.parts.moves.note_ours(
                *(word for intent in due for word in (intent.vm, intent.correlation_id))
            )
            self.parts.executor.follow(due)
        for cluster, outcome in self.parts.executor.answers():
            self._try_for_cluster(cluster, self._work(cluster).answered, outcome)

    def _try_for_cluster(self, cluster: str, do: Callable[..., object], *arguments: object) -> None:
        """Do something for one cluster, whose failure never ends another's work.

        If the engine is away, or another leads, that ends the cycle, since it concerns all; but this cluster
        waits longer, so that what fails there alone does not keep the others from their turn.
        """
        retry_state = self._work(cluster).retry_state
        try:
            do(*arguments)
        except LeaseLost:
            raise
        except EngineAway:
            retry_state.put_off(self._clock(), self._settings.interval_seconds)
            raise
        except Exception as error:
            retry_state.fail(error, self._clock(), self._settings.interval_seconds)

    def _read_and_reconcile(self) -> None:
        if self._clock() >= self._forgot_at + _FORGETTING_SECONDS:
            self._forgot_at = self._clock()
            kept = max(Gates.reach_seconds(self._settings), REACH_SECONDS, _REMEMBERED_SECONDS)
            self._store.forget(older_than_seconds=kept)
        reading = self._read_all()
        if self._latest is not None:
            self._wake(changed(self._latest, reading.snapshot, self._ours_now()))
        self._latest = reading.snapshot
        for watcher, retry_state in self._watchers:
            self._show_reading(watcher, retry_state, reading.snapshot)
        # Who has waited longest comes first: to act for the others may take as long as a reading is fresh.
        by_due = sorted((self._work(one).retry_state.due, one) for one in reading.snapshot.cluster_by_id)
        for _, cluster in by_due:
            work = self._work(cluster)
            work.retry_state.name = f"cluster {reading.snapshot.cluster_by_id[cluster].name}"
            work.compare(reading.open_intents)
            # One that is due soon is looked at by this reading, too: it is of the engine as a whole.
            early = 0.0 if work.retry_state.failing else _EARLY * self._settings.interval_seconds
            if work.retry_state.due <= self._clock() + early and self.parts.goes_on():
                self._try_for_cluster(cluster, self._reconcile, cluster, reading)
        for run in self._runs.pop_due(reading.snapshot):
            if self.parts.goes_on():
                last = self._work(run.cluster).last_plan
                known = reading, last.staying, last.at_home, self._pace.turn_seconds
                self._try_for_cluster(run.cluster, self._runs.advance, run, *known)
        # Clusters that are gone are forgotten once nothing is under way there.
        busy = {intent.cluster for intent in reading.open_intents}
        for gone in self._clusters.keys() - reading.snapshot.cluster_by_id.keys() - busy:
            self._clusters.pop(gone).leave()
        self._metrics.keep_only({cluster.name for cluster in reading.snapshot.clusters})
        self._last_reading = reading
        self._pace.end_turn(reading.began)

    def _show_reading(self, watcher: Watcher, retry_state: RetryState, snapshot: Snapshot) -> None:
        try:
            watcher.observe(snapshot)
        except (EngineAway, StoreAway, LeaseLost):
            raise  # it concerns all
        except Exception as error:
            retry_state.fail(error, self._clock(), self._settings.interval_seconds)
        else:
            retry_state.recover()

    def _read_all(self) -> Reading:
        """Open migrations before those that have ended, and these before the engine: nothing is missed."""
        began, epoch = self._clock(), self.parts.epoch
        if self._store.settle_clock():
            report(LogText.CLOCK_SET_BACK)
        gates, intents = self.parts.memory.gates(), self._store.open_intents()
        history = self._store.history(within_seconds=REACH_SECONDS)
        self._metrics.read(began)
        self._runs.read()
        snapshot = replace(self.read(), draining_hosts=self._runs.draining)
        self.parts.executor.reconsider(history, snapshot)
        fresh_until = self._pace.fresh_until(began)
        self.parts.moves.observe(snapshot, (*intents, *history))
        return Reading(
            parts=self.parts,
            snapshot=snapshot,
            gates=gates,
            open_intents=intents,
            history=history,
            epoch=epoch,
            began=began,
            fresh_until=fresh_until,
        )

    def _reconcile(self, cluster: str, reading: Reading) -> None:
        work = self._work(cluster)
        self.parts.recorder.record_violations(reading.snapshot, cluster)
        self.parts.memory.observe(reading.snapshot, cluster)
        work.reconcile(reading)
        # What failed may have been the plan that is made again.
        if not work.planning:
            work.retry_state.recover()

    def _wake(self, clusters: Iterable[str]) -> None:
        at = self._pace.earliest
        for cluster in clusters:
            if cluster in self._clusters:
                self._clusters[cluster].wake(at)

    def _ours_now(self) -> set[str]:
        return {*self.parts.moves.ours}.union(*(work.vms for work in self._clusters.values()))

    def _work(self, cluster: str) -> ClusterWork:
        if cluster not in self._clusters:
            self._clusters[cluster] = ClusterWork(cluster, self.parts)
        return self._clusters[cluster]

    def _pause(self) -> float:
        now = self._clock()
        pauses = [
            self._leader.seconds_until_due(),
            *(work.retry_state.due - now for work in self._clusters.values()),
            self._runs.due - now,
        ]
        if self._store.open_intents() or any(work.planning for work in self._clusters.values()):
            pauses.append(self._settings.poll_seconds)
        return max(0.0, min(pauses))
