"""Looks at every cluster in turn, for ever: follow what is under way, plan, and take one step at a time.

One thread and no state that must survive: the engine holds what is true and the store what was meant, so
it may be killed at any point. What fails in one cluster is logged and tried again later; the others go on.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from ovirt_enforcer.attention import Attention
from ovirt_enforcer.gates.admission import Closed, Gates
from ovirt_enforcer.gates.busy_cluster import BusyClusterGate, why_busy
from ovirt_enforcer.migrating.executor import Executor
from ovirt_enforcer.planning import report
from ovirt_enforcer.planning.plan import Plan
from ovirt_enforcer.planning.planner import holds, make_plan
from ovirt_enforcer.service.metrics import Metrics
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.store.intents import Intent, Store

#: For so long what was done is remembered at the least, and so often what is older is dropped.
_REMEMBERED_SECONDS = 30 * 24 * 3600.0
_FORGET_EVERY_SECONDS = 3600.0

_log = logging.getLogger(__name__)


class Watcher(Protocol):
    """Is shown whole readings of the engine, and sees for itself to what fails over them."""

    def look(self, snapshot: Snapshot) -> None: ...


@dataclass(slots=True)
class _Cluster(Attention):
    """A cluster, and what is left of the plan that is being carried out there."""

    plan: Plan | None = None


class Daemon:
    """The enforcer of all clusters of one engine."""

    def __init__(
        self,
        settings: EnforcerSettings,
        read: Callable[[], Snapshot],
        store: Store,
        executor: Executor,
        clock: Callable[[], float],
        stopping: Callable[[], bool] = lambda: False,
        watchers: Sequence[Watcher] = (),
        metrics: Metrics | None = None,
        mark_progress: Callable[[], None] = lambda: None,
    ) -> None:
        """`read` gives a snapshot whose reading began after the call; `clock` seconds that only grow.

        Once `stopping` says so, nothing more is asked of the engine. The watchers are shown what is read.
        `mark_progress` is called between any two pieces of work.
        """
        self._settings = settings
        self._read = read
        self._store = store
        self._executor = executor
        self._clock = clock
        self._stopping = stopping
        self._watchers = watchers
        self._metrics = metrics or Metrics()
        self._mark_progress = mark_progress
        self._engine = Attention("engine and store")
        self._clusters: dict[str, _Cluster] = {}
        #: When the history was last cut off at its end.
        self._forgot_at = -math.inf

    def run(self, sleep: Callable[[float], bool]) -> None:
        """Cycle until `sleep`, given the seconds until something is due, says that it is time to stop."""
        while not sleep(self.cycle()):
            pass

    def cycle(self) -> float:
        """Do what is due; return the seconds until something will be."""
        with self._metrics.cycle_seconds.time():
            return self._cycle()

    def _cycle(self) -> float:
        try:
            intents = self._store.open_intents()
            self._metrics.pending.set(len(intents))
            waiting = self._follow(intents)
            if self._due(waiting) and self._goes_on():
                snapshot = self._read()
                for watcher in self._watchers:
                    watcher.look(snapshot)
                self._see_to_all(snapshot, waiting)
        except Exception as error:  # no failure may end the daemon
            self._engine.fail(error, self._clock(), self._settings.interval_seconds)
            self._metrics.cycles.labels("failed").inc()
            return self._engine.due - self._clock()
        self._engine.recover()
        self._metrics.cycles.labels("ok").inc()
        return self._pause(waiting)

    def _follow(self, intents: Sequence[Intent]) -> set[str]:
        """Look at what is under way; return the clusters that must wait for it."""
        waiting = set()
        for intent in intents:
            attention = self._attention(intent.cluster)
            if not self._goes_on():
                break
            try:
                if self._executor.follow(intent):
                    attention.due = self._clock()
                else:
                    waiting.add(intent.cluster)
            except Exception as error:  # one cluster's failure never ends another's cycle
                attention.fail(error, self._clock(), self._settings.interval_seconds)
                waiting.add(intent.cluster)
        return waiting

    def _goes_on(self) -> bool:
        """Whether another piece of work is to be done."""
        self._mark_progress()
        return not self._stopping()

    def _due(self, waiting: set[str]) -> bool:
        known = [attention for cluster, attention in self._clusters.items() if cluster not in waiting]
        return not self._clusters or any(attention.due <= self._clock() for attention in known)

    def _see_to_all(self, snapshot: Snapshot, waiting: set[str]) -> None:
        """Plan for each cluster that is due, and begin its next step."""
        intents = self._store.open_intents()
        self._forget()
        history = self._store.history(within_seconds=Gates.reach_seconds(self._settings))
        gates = Gates(self._settings, history, intents)
        for cluster in sorted(snapshot.cluster_by_id):
            attention = self._attention(cluster, snapshot.cluster_by_id[cluster].name)
            if cluster in waiting or attention.due > self._clock() or not self._goes_on():
                continue
            try:
                self._metrics.looked_at(snapshot, cluster)
                began = self._see_to(cluster, attention, snapshot, gates, intents)
            except Exception as error:  # one cluster's failure never ends another's cycle
                attention.fail(error, self._clock(), self._settings.interval_seconds)
                continue
            attention.recover()
            attention.due = self._clock() + (0.0 if began else self._settings.interval_seconds)
            if began:
                waiting.add(cluster)
        for gone in self._clusters.keys() - snapshot.cluster_by_id.keys() - waiting:
            del self._clusters[gone]
        self._metrics.keep_only({cluster.name for cluster in snapshot.clusters})

    def _forget(self) -> None:
        """Now and then, drop the intents that ended so long ago that no gate asks for them."""
        if self._clock() >= self._forgot_at + _FORGET_EVERY_SECONDS:
            self._forgot_at = self._clock()
            reach = Gates.reach_seconds(self._settings)
            self._store.forget(older_than_seconds=max(reach, _REMEMBERED_SECONDS))

    def _see_to(
        self,
        cluster: str,
        attention: _Cluster,
        snapshot: Snapshot,
        gates: Gates,
        intents: Sequence[Intent],
    ) -> bool:
        """Whether a step was begun."""
        if busy := why_busy(snapshot, cluster, intents):
            attention.say(f"{attention.name}: waits: {busy}")
            self._metrics.closed.labels(BusyClusterGate.name).inc()
            return False
        plan = self._plan(cluster, attention, snapshot, gates)
        if not plan.steps:
            return False
        step = report.step_text(plan.steps[0], snapshot)
        try:
            admitted = gates.admit(snapshot, plan)
        except Closed as closed:
            attention.say(f"{attention.name}: not now: {step}: {closed}")
            self._metrics.closed.labels(closed.gate).inc()
            return False
        _log.info("%s: %s", attention.name, step)
        attention.plan = msgspec.structs.replace(plan, steps=plan.steps[1:])
        self._executor.begin(admitted, snapshot)
        return True

    def _plan(self, cluster: str, attention: _Cluster, snapshot: Snapshot, gates: Gates) -> Plan:
        """What is left of the plan that was begun, if it still leads where it should; else a new one."""
        held = gates.held(snapshot)
        begun, attention.plan = attention.plan, None
        if begun is not None and begun.steps and holds(snapshot, begun, held):
            return begun
        plan = make_plan(snapshot, cluster, held)
        self._metrics.plans.labels("yes" if plan.proven else "no").inc()
        for dropped in plan.refused:
            attention.warn_once(report.dropped_text(dropped, snapshot))
        attention.announce(report.text(plan, snapshot))
        return plan

    def _attention(self, cluster: str, name: str | None = None) -> _Cluster:
        attention = self._clusters.setdefault(cluster, _Cluster(f"cluster {cluster}", due=self._clock()))
        if name is not None:
            attention.name = f"cluster {name}"
        return attention

    def _pause(self, waiting: set[str]) -> float:
        """Seconds until a migration under way is to be looked at, or a cluster is due."""
        pauses = [
            attention.due - self._clock()
            for cluster, attention in self._clusters.items()
            if cluster not in waiting
        ]
        if waiting:
            pauses.append(self._settings.poll_seconds)
        return max(0.0, min(pauses, default=self._settings.interval_seconds))
