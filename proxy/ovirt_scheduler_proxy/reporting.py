"""Says what was done with each call, after it was answered: to the log, to the metrics, to the record."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import time

from ovirt_service.http.response import Response
from ovirt_service.saying import Few

from .contract.answer import Answer, Asked
from .contract.scheduler import Scheduler
from .operation.decisions import DecisionLog
from .operation.metrics import CONTENT_TYPE, Metrics
from .pool.outcome import Cause
from .xmlrpc.fault import Fault

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
        self._metrics.discovered(seconds, moment)
        counts = ", ".join(f"{len(units)} {key}" for key, units in found.items())
        log.info("[%s] discover %.1f ms: %s", self._next_id(), seconds * 1e3, counts)

    def faulted(self, fault: Fault, method: str) -> None:
        self._page = None
        self._metrics.faulted()
        request_id = self._next_id()
        if (more := self._more("fault", fault.code)) is not None:
            log.warning(
                "[%s] %r refused: %s (fault %d)%s",
                request_id,
                method[:80],
                fault.sentence,
                fault.code,
                more,
            )

    def connection_closed(self) -> None:
        self._metrics.connection_closed()

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
        """Which unit dropped which host: worth its time only where somebody reads it."""
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
