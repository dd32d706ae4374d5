"""What Prometheus can read of the proxy at `/metrics`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from prometheus_client import Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ovirt_service.metrics import new_registry

from ..contract.answer import Answer
from ..contract.scheduler import Scheduler
from ..pool.outcome import Cause

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_PREFIX = "ovirt_scheduler_proxy"
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

#: Stands for all units that are not loaded, whose names a caller may choose at will.
_MISSING = "(not loaded)"


class Metrics:
    """Counts and times."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._registry = new_registry(_PREFIX)
        self._registry.register(_State(scheduler))
        self._calls = Counter(
            f"{_PREFIX}_calls", "Calls by method and result", ["method", "result"], registry=self._registry
        )
        self._seconds = Histogram(
            f"{_PREFIX}_call_duration_seconds",
            "Time to answer a call",
            ["method"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._unit_seconds = Histogram(
            f"{_PREFIX}_unit_duration_seconds",
            "Time that a unit itself ran",
            ["method", "unit"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._discovery = Gauge(
            f"{_PREFIX}_last_discovery_timestamp_seconds",
            "When the engine's last discovery was answered, in Unix time; 0: not since the proxy started",
            registry=self._registry,
        )
        # The library looks its labels up slowly; loaded units are few, so each is looked up once.
        self._of_unit = cache(self._find_unit)
        self._of_method = cache(self._find_method)
        self._failures = Counter(
            f"{_PREFIX}_unit_failures",
            "Failures of units by cause",
            ["method", "unit", "cause"],
            registry=self._registry,
        )

        self._closed = Counter(
            f"{_PREFIX}_connections_closed",
            "Connections closed since their client sent no whole request in time, or did not read its answer",
            registry=self._registry,
        )

    def answered(self, answer: Answer, seconds: float) -> None:
        method = answer.question.method
        result = "ok"
        for asked in answer.asked:
            failure = asked.outcome.failure
            if failure is None:
                self._of_unit(method, asked.unit).observe(asked.outcome.seconds)
                continue
            result = "unit_failed"
            unit = _MISSING if failure.cause is Cause.MISSING else asked.unit
            self._failures.labels(method, unit, failure.cause.value).inc()
        counter, histogram = self._of_method(method, result)
        counter.inc()
        histogram.observe(seconds)

    def _find_unit(self, method: str, unit: str) -> Histogram:
        return self._unit_seconds.labels(method, unit)

    def _find_method(self, method: str, result: str) -> tuple[Counter, Histogram]:
        return self._calls.labels(method, result), self._seconds.labels(method)

    def discovered(self, seconds: float, moment: float) -> None:
        self._discovery.set(moment)
        self._calls.labels("discover", "ok").inc()
        self._seconds.labels("discover").observe(seconds)

    def faulted(self) -> None:
        self._calls.labels("none", "fault").inc()

    def connection_closed(self) -> None:
        self._closed.inc()

    def page(self) -> bytes:
        return generate_latest(self._registry)


class _State(Collector):
    """What can be read off when somebody asks: workers, restarts, breakers."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def collect(self) -> Iterable[Metric]:
        workers = GaugeMetricFamily(f"{_PREFIX}_workers", "Worker processes", labels=["folder"])
        restarts = CounterMetricFamily(
            f"{_PREFIX}_worker_restarts", "Workers that ended unasked and were replaced", labels=["folder"]
        )
        for folder, pool in self._scheduler.plugins.pools.items():
            workers.add_metric([str(folder)], len(pool.worker_pids()))
            restarts.add_metric([str(folder)], pool.restarts)
        open_breakers = self._scheduler.breakers.open_keys()
        breakers = GaugeMetricFamily(
            f"{_PREFIX}_open_breakers", "Units that are cut off", labels=["kind", "unit"]
        )
        for key in open_breakers:
            kind, _, unit = key.partition(" ")
            breakers.add_metric([kind, unit], 1)
        loaded = GaugeMetricFamily(
            f"{_PREFIX}_units", "Units loaded", value=len(self._scheduler.plugins.registry.units)
        )
        return [workers, restarts, breakers, loaded]
