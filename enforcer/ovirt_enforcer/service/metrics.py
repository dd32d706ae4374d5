"""What Prometheus can read of the enforcer."""

from __future__ import annotations

from collections.abc import Set

import prometheus_client
from prometheus_client import Gauge, Histogram

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.violations import find_violations
from ovirt_placement.store.intents import Intent
from ovirt_service.metrics import new_registry

_PREFIX = "ovirt_enforcer"
_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_HARDNESS = ("hard", "soft")


class Metrics:
    """Counts, times and states; each is moved where it happens."""

    def __init__(self) -> None:
        self.registry = new_registry()
        self._clusters: frozenset[str] = frozenset()
        self.cycles = self._counter("cycles", "Cycles by result: ok or failed", "result")
        self.cycle_seconds = Histogram(
            f"{_PREFIX}_cycle_seconds", "Time of a cycle", buckets=_BUCKETS, registry=self.registry
        )
        self.plans = self._counter(
            "plans", "Plans made; proven: none mends more, or as much with less", "proven"
        )
        self.migrations = self._counter("migrations", "Migrations that have ended, by result", "result")
        self.closed = self._counter(
            "closed", "Steps and clusters that had to wait, by the closed gate", "gate"
        )
        self.pending = self._gauge("pending_intents", "Migrations that are meant and whose end is not known")
        self.broken_rules = self._gauge(
            "broken_rules",
            "Rules that were broken when a cluster was last looked at",
            "cluster",
            "hardness",
        )

    def ended(self, intent: Intent) -> None:
        """Count a migration whose end is known."""
        self.migrations.labels(intent.state.value).inc()

    def looked_at(self, snapshot: Snapshot, cluster: str) -> None:
        """Count the rules that a cluster breaks."""
        name = snapshot.cluster_by_id[cluster].name
        hard = [violation.hard for violation in find_violations(snapshot, cluster)]
        for hardness, wanted in zip(_HARDNESS, (True, False), strict=True):
            self.broken_rules.labels(name, hardness).set(hard.count(wanted))
        self._clusters |= {name}

    def keep_only(self, clusters: Set[str]) -> None:
        """Tell no more of clusters but these, by their names."""
        for gone in self._clusters - clusters:
            for hardness in _HARDNESS:
                self.broken_rules.remove(gone, hardness)
        self._clusters &= clusters

    def _counter(self, name: str, help_text: str, *labels: str) -> prometheus_client.Counter:
        return prometheus_client.Counter(f"{_PREFIX}_{name}", help_text, labels, registry=self.registry)

    def _gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", help_text, labels, registry=self.registry)
