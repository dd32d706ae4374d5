"""Closed for a while after many failures in a cluster: what makes migrations fail is not repaired by more.

Afterwards one migration is let through. If it fails, the breaker opens again, for twice as long; once one has
succeeded, all is as before. All of this follows from the history, so that a restart changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from ovirt_enforcer.gates.gate import Facts, Gate
from ovirt_enforcer.gates.history import begun_ago, failed
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model.amounts import counted
from ovirt_placement.planning.plan import Step
from ovirt_placement.store.intents import Intent, IntentState
from ovirt_placement.store.pauses import ALL_CLUSTERS
from ovirt_service.back_off import BackOff

#: The longest pause is this many times the first.
_LONGEST: Final = 16
#: This many of the longest pauses are looked back upon: a cluster that keeps failing must not begin again.
_LONGEST_REMEMBERED: Final = 4


class BreakerGate(Gate):
    name = "breaker"

    def why_closed(self, facts: Facts, cluster: str, step: Step) -> str | None:
        return self.why_open(facts, cluster)

    def why_open(self, facts: Facts, cluster: str) -> str | None:
        """Why nothing is migrated in a cluster for now; None if something may be."""
        trips = _trips(facts, cluster)
        if not trips.in_a_row:
            return None
        pause = _pause(facts, trips)
        if trips.last_ago < pause:
            return (
                f"{counted(trips.failures, 'migration')} failed here of late, the last for this reason:"
                f" {trips.reason}; the next is tried {pause:.0f} s after that, or after ovirt-enforcer resume"
            )
        if any(one.cluster == cluster and begun_ago(one) < trips.last_ago for one in facts.open_intents):
            return "migrations failed here of late, and the one that tries whether they do still is under way"
        return None

    def seconds_left(self, facts: Facts, cluster: str) -> float:
        trips = _trips(facts, cluster)
        left = _pause(facts, trips) - trips.last_ago
        return left if left > 0 else inf

    def reach_seconds(self, settings: EnforcerSettings) -> float:
        return settings.breaker_seconds + settings.breaker_pause_seconds * _LONGEST * _LONGEST_REMEMBERED


@dataclass(slots=True)
class _Trips:
    """What the history of a cluster comes to, read from its begin."""

    #: How often the breaker opened since a migration last succeeded.
    in_a_row: int = 0
    #: How many seconds ago it did last.
    last_ago: float = inf
    #: How many failures made it, and how the last one read.
    failures: int = 0
    reason: str | None = None
    #: How long ago migrations failed that have not opened it, by the request: a group fails as one.
    recent: dict[str, float] = field(default_factory=dict)

    def add(self, intent: Intent, settings: EnforcerSettings) -> None:
        """Take the next migration that ended; one that began before the breaker opened says nothing new."""
        ago = intent.age_seconds
        if begun_ago(intent) > self.last_ago:
            return
        if intent.state is IntentState.DONE:
            self.in_a_row, self.last_ago = 0, inf
            return
        within = settings.breaker_seconds
        self.recent = {request: then for request, then in self.recent.items() if then - ago < within}
        self.recent[intent.correlation_id.partition("-")[0]] = ago
        if self.in_a_row or len(self.recent) >= settings.breaker_failures:
            self.failures = self.failures + 1 if self.in_a_row else len(self.recent)
            self.in_a_row += 1
            self.last_ago, self.reason, self.recent = ago, intent.reason, {}


def _pause(facts: Facts, trips: _Trips) -> float:
    first = facts.settings.breaker_pause_seconds
    return BackOff(first, first * _LONGEST).pause_after(trips.in_a_row)


def _trips(facts: Facts, cluster: str) -> _Trips:
    trips = _Trips()
    for intent in _ended_since_resumed(facts, cluster):
        trips.add(intent, facts.settings)
    return trips


def _ended_since_resumed(facts: Facts, cluster: str) -> Iterable[Intent]:
    """What ended in a cluster since somebody last had it resumed, in the order in which it ended."""
    known = facts.snapshot.cluster_by_id[cluster]
    since = min(facts.remembered.resumed.get(key, inf) for key in (ALL_CLUSTERS, cluster, known.name))
    ended = (
        intent
        for intent in facts.history
        if intent.cluster == cluster
        and intent.age_seconds < since
        and (intent.state is IntentState.DONE or failed(intent))
    )
    return sorted(ended, key=lambda intent: -intent.age_seconds)
