"""Looks at every cluster in turn, for ever: follow what is under way, plan, and take one step at a time.

One thread and no state that must survive: the engine holds what is true and the store what was meant, so
it may be killed at any point. What fails in one cluster is logged and tried again later; the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from ovirt_enforcer.gates.gates import Closed, Gates, why_busy
from ovirt_enforcer.keeping.keeper import Keeper
from ovirt_enforcer.migrating.executor import Executor
from ovirt_enforcer.planning import report
from ovirt_enforcer.planning.plan import Plan
from ovirt_enforcer.planning.planner import holds, make_plan
from ovirt_enforcer.service.attention import Attention
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.store.intents import Intent, Store

_log = logging.getLogger(__name__)


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
        keeper: Keeper | None = None,
    ) -> None:
        """`read` gives a snapshot whose reading began after the call; `clock` seconds that only grow.

        Once `stopping` says so, nothing more is asked of the engine. The keeper is shown what is read.
        """
        self._settings = settings
        self._read = read
        self._store = store
        self._executor = executor
        self._clock = clock
        self._stopping = stopping
        self._keeper = keeper
        self._engine = Attention("engine and store")
        self._clusters: dict[str, Attention] = {}

    def run(self, sleep: Callable[[float], bool]) -> None:
        """Cycle until `sleep`, given the seconds until something is due, says that it is time to stop."""
        while not sleep(self.cycle()):
            pass

    def cycle(self) -> float:
        """Do what is due; return the seconds until something will be."""
        try:
            waiting = self._follow(self._store.open_intents())
            if self._due(waiting) and not self._stopping():
                snapshot = self._read()
                if self._keeper is not None:
                    self._keeper.look(snapshot)
                self._see_to_all(snapshot, waiting)
        except Exception as error:  # no failure may end the daemon
            self._engine.fail(error, self._clock(), self._settings.interval_seconds)
            return self._engine.due - self._clock()
        self._engine.recover()
        return self._pause(waiting)

    def _follow(self, intents: Sequence[Intent]) -> set[str]:
        """Look at what is under way; return the clusters that must wait for it."""
        waiting = set()
        for intent in intents:
            attention = self._attention(intent.cluster)
            if self._stopping():
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

    def _due(self, waiting: set[str]) -> bool:
        known = [attention for cluster, attention in self._clusters.items() if cluster not in waiting]
        return not self._clusters or any(attention.due <= self._clock() for attention in known)

    def _see_to_all(self, snapshot: Snapshot, waiting: set[str]) -> None:
        """Plan for each cluster that is due, and begin its next step."""
        intents = self._store.open_intents()
        history = self._store.history(within_seconds=Gates.reach_seconds(self._settings))
        gates = Gates(self._settings, history, intents)
        for cluster in sorted(snapshot.cluster_by_id):
            attention = self._attention(cluster, snapshot.cluster_by_id[cluster].name)
            if cluster in waiting or attention.due > self._clock() or self._stopping():
                continue
            try:
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

    def _see_to(
        self,
        cluster: str,
        attention: Attention,
        snapshot: Snapshot,
        gates: Gates,
        intents: Sequence[Intent],
    ) -> bool:
        """Whether a step was begun."""
        if busy := why_busy(snapshot, cluster, intents):
            attention.say(f"{attention.name}: waits: {busy}")
            return False
        plan = self._plan(cluster, attention, snapshot, gates)
        if not plan.steps:
            return False
        step = report.step_text(plan.steps[0], snapshot)
        try:
            admitted = gates.admit(snapshot, plan)
        except Closed as closed:
            attention.say(f"{attention.name}: not now: {step}: {closed}")
            return False
        _log.info("%s: %s", attention.name, step)
        attention.plan = msgspec.structs.replace(plan, steps=plan.steps[1:])
        self._executor.begin(admitted, snapshot)
        return True

    def _plan(self, cluster: str, attention: Attention, snapshot: Snapshot, gates: Gates) -> Plan:
        """What is left of the plan that was begun, if it still leads where it should; else a new one."""
        held = gates.held(snapshot)
        begun, attention.plan = attention.plan, None
        if begun is not None and begun.steps and holds(snapshot, begun, held):
            return begun
        plan = make_plan(snapshot, cluster, held)
        attention.announce(report.text(plan, snapshot))
        return plan

    def _attention(self, cluster: str, name: str | None = None) -> Attention:
        attention = self._clusters.setdefault(cluster, Attention(f"cluster {cluster}", due=self._clock()))
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
