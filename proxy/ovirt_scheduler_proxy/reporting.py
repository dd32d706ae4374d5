"""Reports what was done with each call, after it was answered: to the log, the metrics, the record."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import time

from prometheus_client import generate_latest

from ovirt_scheduler_proxy.logs import DecisionLog
from ovirt_scheduler_proxy.processes import Cause
from ovirt_scheduler_proxy.scheduler import Answer, Asked, Scheduler
from ovirt_scheduler_proxy.xmlrpc import Fault
from ovirt_service.http.connection import Response
from ovirt_service.log import Few
from ovirt_service.metrics import Instruments

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_PREFIX = "ovirt_scheduler_proxy"
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

#: Stands for all units that are not loaded, whose names a caller may choose at will.
_MISSING = "(not loaded)"


class Metrics(Instruments):
    """Counts and times."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(_PREFIX)
        self._scheduler = scheduler
        self.calls = self.counter("calls", "Calls by method and result", "method", "result")
        self.seconds = self.histogram(
            "call_duration_seconds", "Time to answer a call", "method", buckets=_BUCKETS
        )
        self._unit_seconds = self.histogram(
            "unit_duration_seconds", "Time that a unit itself ran", "method", "unit", buckets=_BUCKETS
        )
        self.discovery = self.gauge(
            "last_discovery_timestamp_seconds",
            "When the engine's last discovery was answered, in Unix time; 0: not since the proxy started",
        )
        self._failures = self.counter(
            "unit_failures", "Failures of units by cause", "method", "unit", "cause"
        )
        self.closed = self.counter(
            "connections_closed",
            "Connections closed since their client sent no whole request in time, or did not read its answer",
        )
        self._workers = self.gauge("workers", "Worker processes", "folder")
        self._restarts = self.counter(
            "worker_restarts", "Workers that ended unasked and were replaced", "folder"
        )
        self._breakers = self.gauge("open_breakers", "Units that are cut off", "kind", "unit")
        self._units = self.gauge("units", "Units loaded")

    def answered(self, answer: Answer, seconds: float) -> None:
        method = answer.question.method
        result = "ok"
        for asked in answer.asked:
            failure = asked.outcome.failure
            if failure is None:
                self._unit_seconds.labels(method, asked.unit).observe(asked.outcome.seconds)
                continue
            result = "unit_failed"
            unit = _MISSING if failure.cause is Cause.MISSING else asked.unit
            self._failures.labels(method, unit, failure.cause.value).inc()
        self.calls.labels(method, result).inc()
        self.seconds.labels(method).observe(seconds)

    def page(self) -> bytes:
        """All of them as text, with how workers, breakers and units stand now."""
        for folder, pool in self._scheduler.plugins.pools.items():
            self._workers.labels(str(folder)).set(len(pool.worker_pids()))
            self._restarts.labels(str(folder)).inc(pool.restarts)
            pool.restarts = 0
        self._breakers.clear()
        for key in self._scheduler.breakers.open_keys():
            self._breakers.labels(*key.split(" ", 1)).set(1)
        self._units.set(len(self._scheduler.plugins.units))
        return generate_latest(self.registry)


log = logging.getLogger(__name__)

#: For this many seconds a page of metrics is shown again, unless there is something new: who reads it in a
#: loop costs the engine's calls little.
_PAGE_SECONDS = 0.25

#: Seconds between an answer and its report.
_PAUSE = 0.005

#: Of faults, and of failures of a unit by one cause, this many are described within these seconds.
_DESCRIBED, _DESCRIBED_SECONDS = 10, 60.0


class Reporter:
    """Each call gets an id of its own, by which its lines in the log belong together."""

    def __init__(self, scheduler: Scheduler, decisions: DecisionLog | None) -> None:
        self._scheduler = scheduler
        self._decisions = decisions
        self._metrics = Metrics(scheduler)
        self._described = Few(_DESCRIBED, _DESCRIBED_SECONDS)
        self._prefix = os.urandom(3).hex()
        self._numbers = itertools.count(1)
        #: Calls that are answered but not yet reported.
        self._notes: list[tuple[Answer, float]] = []
        self._page: Response | None = None
        self._page_expires = 0.0

    def answered(self, answer: Answer, seconds: float) -> None:
        """Remember to report the call: a moment later, and with others, it costs the next call nothing."""
        if not self._notes:
            asyncio.get_running_loop().call_later(_PAUSE, self._report_all)
        self._notes.append((answer, seconds))

    def discovered(self, found: dict[str, dict[str, list[str]]], seconds: float, moment: float) -> None:
        """The engine's discovery was answered at this `moment` (Unix time) after these seconds of work."""
        self._page = None
        self._metrics.discovery.set(moment)
        self._metrics.calls.labels("discover", "ok").inc()
        self._metrics.seconds.labels("discover").observe(seconds)
        counts = ", ".join(f"{len(units)} {key}" for key, units in found.items())
        log.info("[%s] discover %.1f ms: %s", self._next_id(), seconds * 1e3, counts)

    def faulted(self, fault: Fault, method: str) -> None:
        self._page = None
        self._metrics.calls.labels("none", "fault").inc()
        request_id = self._next_id()
        if (more := self._more("fault", fault.code)) is not None:
            words = method[:80], fault.sentence, fault.code, more
            log.warning("[%s] %r refused: %s (fault %d)%s", request_id, *words)

    def connection_closed(self) -> None:
        self._metrics.closed.inc()

    def metrics_page(self) -> Response:
        now = time.monotonic()
        if self._page is None or self._notes or now > self._page_expires:
            self._report_all()
            self._page = Response(self._metrics.page(), CONTENT_TYPE)
            self._page_expires = now + _PAGE_SECONDS
        return self._page

    def close(self) -> None:
        self._report_all()
        if self._decisions is not None:
            self._decisions.close()

    def _report_all(self) -> None:
        notes, self._notes = self._notes, []
        self._page = None
        for answer, seconds in notes:
            self._report(answer, seconds)

    def _report(self, answer: Answer, seconds: float) -> None:
        request_id = self._next_id()
        self._metrics.answered(answer, seconds)
        question = answer.question
        log.info(
            "[%s] %s vm=%s hosts=%d out=%d %.1f ms: %s",
            request_id,
            question.method,
            question.vm or "-",
            len(question.hosts),
            answer.hosts_out,
            seconds * 1e3,
            " ".join([_unit_time(asked) for asked in answer.asked]) or "no units",
        )
        for asked in answer.asked:
            self._log_unit(request_id, asked)
        self._report_fallen(request_id, answer, seconds)

    def _report_fallen(self, request_id: str, answer: Answer, seconds: float) -> None:
        """Which unit dropped which host: worth its time only where it is logged or recorded."""
        explaining = log.isEnabledFor(logging.DEBUG)
        if not explaining and self._decisions is None:
            return
        fallen = self._scheduler.fallen(answer)
        if explaining:
            for host, units in fallen.items():
                log.debug("[%s] host %s: dropped by %s", request_id, host, ", ".join(units))
        if self._decisions is not None:
            self._decisions.record(request_id, answer, seconds, fallen)

    def _log_unit(self, request_id: str, asked: Asked) -> None:
        outcome, errors = asked.outcome, asked.outcome.errors
        if (failure := outcome.failure) is not None:
            # Names of units that are missing are what a caller makes up; what refuses a VM is always said.
            unit = "" if failure.cause is Cause.MISSING else asked.unit
            more = "" if failure.cause is Cause.REFUSED else self._more(unit, failure.cause)
            if more is None:
                errors = ""
            else:
                log.warning("[%s] %s %s%s", request_id, asked.unit, failure.sentence, more)
        for text in (outcome.printed, errors):
            for line in text.splitlines():
                log.info("[%s] %s: %s", request_id, asked.unit, line)

    def _more(self, *kind: object) -> str | None:
        """What is added to a line that says how many of its kind were left out; None if it is one of them."""
        count = self._described.left_out(kind)
        return f"; {count} more were not described" if count else None if count is None else ""

    def _next_id(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"


def _unit_time(asked: Asked) -> str:
    outcome = asked.outcome
    failed = f" FAILED ({outcome.failure.cause.value})" if outcome.failure else ""
    return f"{asked.unit}={outcome.seconds * 1e3:.1f}ms{failed}"
