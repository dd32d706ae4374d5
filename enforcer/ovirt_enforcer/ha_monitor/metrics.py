"""What Prometheus can read of HA reservations."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from ovirt_enforcer.ha_monitor.verdict import ReservationState, ReservationVerdict

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
