"""Looks at every cluster, for ever: follow what is under way, read what is due, reconcile it.

No state that must survive: the engine holds what is true and the store what was meant, so it may be killed at
any point. What fails in one cluster is logged and tried again later; the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence

from ovirt_enforcer.actions.migrate_vm.backoff import REACH_SECONDS
from ovirt_enforcer.actions.migrate_vm.restless import Movements
from ovirt_enforcer.service import triggers
from ovirt_enforcer.service.cluster import ClusterWork
from ovirt_enforcer.service.cycles import Cycles
from ovirt_enforcer.service.forgetting import Forgetting
from ovirt_enforcer.service.freshness import Freshness
from ovirt_enforcer.service.health import Health
from ovirt_enforcer.service.leading import Leader
from ovirt_enforcer.service.look import Look
from ovirt_enforcer.service.metrics import EnforcerMetrics
from ovirt_enforcer.service.own_migrations import OwnMigrations
from ovirt_enforcer.service.pace import Pace
from ovirt_enforcer.service.parts import Parts
from ovirt_enforcer.service.runs_under_way import RunsUnderWay
from ovirt_enforcer.service.watcher import Watcher
from ovirt_placement.engine.connection.client import EngineAway
from ovirt_placement.engine.reading.events import EngineEvent
from ovirt_placement.model import Snapshot
from ovirt_placement.store.fencing import LeaseLost
from ovirt_placement.store.intents import Intent, Store

_log = logging.getLogger(__name__)


class Daemon:
    """The enforcer of all clusters of one engine."""

    def __init__(
        self,
        read: Callable[[], Snapshot],
        store: Store,
        leader: Leader,
        parts: Parts,
        metrics: EnforcerMetrics,
        watchers: Sequence[Watcher] = (),
        health: Health | None = None,
        people: Callable[[], None] = lambda: None,
        ended: Callable[[Look | None, Exception | None], None] = lambda look, error: None,
    ) -> None:
        """`read` gives a snapshot whose reading began after the call. The watchers are shown what is read.

        `people` is called in each cycle, to log what people did; `ended` after each, with the look that it
        took, if any, and what it failed of: also what one before it did, if the engine was not asked since.
        """
        self._read = read
        self._store = store
        self._leader = leader
        self._parts = parts
        self._settings = parts.settings
        self._clock = parts.clock
        self._metrics = metrics
        self._watchers = watchers
        self._cycles = Cycles(metrics, health, self._clock, self._settings.interval_seconds)
        self._people = people
        self._ended = ended
        self._look_taken: Look | None = None
        self._clusters: dict[str, ClusterWork] = {}
        self._epoch = 0
        self._latest: Snapshot | None = None
        self._pace = Pace(self._clock)
        self._freshness = Freshness()
        self._movements = Movements(self._settings.circle_seconds, self._clock)
        self._ours = OwnMigrations(self._clock)
        #: What people had said of migrations in the last cycle.
        self._said: Hashable = None
        self._runs = RunsUnderWay(parts)
        self._forgetting = Forgetting(store, self._settings, self._clock)

    def run(self, sleep: Callable[[float], bool]) -> None:
        """Cycle until `sleep`, given the seconds until something is due, says that it is time to stop."""
        while not sleep(self.cycle()):
            pass
        self._forget_all()

    @property
    def epoch(self) -> int:
        """The epoch of the lease in which it acts; 0 while it watches who does."""
        return self._epoch

    @property
    def leads(self) -> bool:
        """Whether it acts, rather than watches who does."""
        return self._epoch > 0

    @property
    def due(self) -> bool:
        """Whether there is a cluster or a maintenance run to look at."""
        return self._runs.due <= self._clock() or any(
            work.retry_state.due <= self._clock() for work in self._clusters.values()
        )

    def cycle(self) -> float:
        """Do what is due; return the seconds until something will be."""
        with self._store.reads_together():
            return self._seconds_until_due()

    def _seconds_until_due(self) -> float:
        """Cycle, and note how that ended."""
        with self._metrics.cycle_seconds.time():
            try:
                pause = self._cycle()
            except Exception as error:  # no failure may end the daemon
                self._cycles.failed(error)
                self._ended(None, error)
                self._parts.recorder.failed(error)
                return min(self._cycles.pause, self._leader.seconds_until_due())
        if not self.leads:
            self._cycles.followed()
        else:
            self._cycles.ended(engine_asked=self._look_taken is not None)
            if self._parts.goes_on():  # what is about to stop has looked at nothing
                self._ended(self._look_taken, self._cycles.failure)
        return pause

    def happened(self, events: Iterable[EngineEvent]) -> None:
        """Look at once at the clusters that these concern."""
        if self._latest is not None:
            self._wake(triggers.reported(events, self._latest, self._ours.known))

    def published(self, snapshot: Snapshot) -> None:
        """Look at once at the clusters in which this differs from what was read last."""
        if self._latest is not None:
            self._wake(triggers.changed(self._latest, snapshot, self._ours_now()))
            self._latest = snapshot

    def wake_all(self) -> None:
        """Look at every cluster: much happened, and nobody says what."""
        self._wake(self._clusters)

    def _cycle(self) -> float:
        self._look_taken = None
        if not self._leader.tend():
            self._lead(0)
            return self._leader.seconds_until_due()
        self._lead(self._leader.epoch)
        intents = self._store.open_intents()
        self._metrics.pending.set(len(intents))
        self._parts.executor.keep_only(intents)
        self._follow(intents)
        self._listen()
        for cluster, work in self._clusters.items():
            self._try(cluster, work.collect)
        if (self.due or not self._clusters) and self._parts.goes_on():
            self._look()
        return self._pause()

    def _listen(self) -> None:
        """Look at once at what somebody approved, had applied, paused or resumed."""
        self._people()
        said, self._said = self._said, self._parts.memory.words()
        if said is not None and said != self._said:
            self.wake_all()
        self._runs.learn()

    def _lead(self, epoch: int) -> None:
        """Begin again where another may have led meanwhile; 0 to lead no more."""
        if epoch != self._epoch:
            self._forget_all()
            self._epoch = epoch

    def _forget_all(self) -> None:
        for work in self._clusters.values():
            work.leave()
        self._clusters.clear()
        self._latest = None
        self._runs.forget()

    def _follow(self, intents: Sequence[Intent]) -> None:
        """Look at what is under way, but where that failed a moment ago; take note of what came of it."""
        if self._parts.goes_on():
            due = [intent for intent in intents if not self._rests(intent.cluster)]
            self._ours.note(*(word for intent in due for word in (intent.vm, intent.correlation_id)))
            self._parts.executor.follow(due)
        for cluster, outcome in self._parts.executor.answers():
            self._try(cluster, self._work(cluster).answered, outcome)

    def _rests(self, cluster: str) -> bool:
        """Whether a cluster waits, since something failed there a moment ago."""
        retry_state = self._work(cluster).retry_state
        return retry_state.failing and retry_state.due > self._clock()

    def _try(self, cluster: str, do: Callable[..., object], *arguments: object) -> None:
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

    def _look(self) -> None:
        """Read the engine, and reconcile each cluster that is due."""
        self._forgetting.now_and_then()
        look = self._read_all()
        self._ours.forget_old()
        if self._latest is not None:
            self._wake(triggers.changed(self._latest, look.snapshot, self._ours_now()))
        self._latest = look.snapshot
        for watcher in self._watchers:
            watcher.look(look.snapshot)
        for cluster in sorted(look.snapshot.cluster_by_id):
            work = self._work(cluster)
            work.retry_state.name = f"cluster {look.snapshot.cluster_by_id[cluster].name}"
            work.compare(look.open_intents)
            if work.retry_state.due <= self._clock() and self._parts.goes_on():
                self._try(cluster, self._reconcile, cluster, look)
        for run in self._runs.take(look):
            plan = self._work(run.cluster).last_plan
            self._try(run.cluster, self._runs.advance, run, look, plan, self._pace.look_seconds)
        self._keep_only(look)
        self._look_taken = look
        self._pace.looked(look.began)

    def _read_all(self) -> Look:
        """Open migrations before those that have ended, and these before the engine: nothing is missed."""
        began, epoch = self._clock(), self._epoch
        if self._store.settle_clock():
            _log.warning("the database's clock was set back: what is dated in the future counts as of now")
        gates, intents = self._parts.memory.gates(), self._store.open_intents()
        history = self._store.history(within_seconds=REACH_SECONDS)
        self._metrics.read(began)
        snapshot = self._runs.marked(self._read)
        self._parts.executor.reconsider(history, snapshot)
        fresh_until = self._freshness.until(began, self._clock())
        restless = self._movements.look(snapshot, (*intents, *history))
        return Look(
            self._parts,
            snapshot,
            gates,
            intents,
            history,
            restless,
            epoch,
            began,
            fresh_until,
            self._runs.emptied,
            self._runs.ways_home(snapshot),
        )

    def _reconcile(self, cluster: str, look: Look) -> None:
        work = self._work(cluster)
        self._parts.recorder.looked_at(look.snapshot, cluster)
        self._parts.memory.look(look.snapshot, cluster)
        work.reconcile(look)
        self._ours.note(*work.take_begun_ids())
        work.retry_state.recover()

    def _keep_only(self, look: Look) -> None:
        """Forget clusters that are gone, once nothing is under way there."""
        busy = {intent.cluster for intent in look.open_intents}
        for gone in self._clusters.keys() - look.snapshot.cluster_by_id.keys() - busy:
            self._clusters.pop(gone).leave()
        self._metrics.keep_only({cluster.name for cluster in look.snapshot.clusters})

    def _wake(self, clusters: Iterable[str]) -> None:
        at = self._pace.earliest
        for cluster in clusters:
            if cluster in self._clusters:
                self._clusters[cluster].wake(at)

    def _ours_now(self) -> set[str]:
        return {*self._ours.known}.union(*(work.vms for work in self._clusters.values()))

    def _work(self, cluster: str) -> ClusterWork:
        if cluster not in self._clusters:
            self._clusters[cluster] = ClusterWork(cluster, self._parts)
        return self._clusters[cluster]

    def _pause(self) -> float:
        """Seconds until a migration under way is to be looked at, a cluster is due, or the lease is."""
        now = self._clock()
        pauses = [
            self._leader.seconds_until_due(),
            *(work.retry_state.due - now for work in self._clusters.values()),
            self._runs.due - now,
        ]
        if self._store.open_intents() or any(work.planning for work in self._clusters.values()):
            pauses.append(self._settings.poll_seconds)
        return max(0.0, min(pauses))
