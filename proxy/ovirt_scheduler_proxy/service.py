"""The running proxy: loads the plugins, opens the port, answers calls and reports them; signals, watchdog."""

import asyncio
import gc
import itertools
import logging
import os
import signal
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import starmap
from pathlib import Path

from ovirt_scheduler_proxy import logs, xmlrpc
from ovirt_scheduler_proxy.http import Gate, asks_for_metrics, check_content, open_socket, tls_context
from ovirt_scheduler_proxy.plugins import Reloader, load_all
from ovirt_scheduler_proxy.processes import Cause, Outcome, end_children
from ovirt_scheduler_proxy.scheduler import Answer, Scheduler
from ovirt_scheduler_proxy.settings import TROUBLE_SHOOTING, Settings
from ovirt_scheduler_proxy.xmlrpc import Fault
from ovirt_service.daemon import Notifier
from ovirt_service.http.connection import HttpError, HttpRequest, Respond, Response
from ovirt_service.http.listener import Limits, Listener, possible_connections
from ovirt_service.repetition import Few

log = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: For this many seconds a page of metrics is shown again, unless there is something new: who reads it in a
#: loop costs the engine's calls little.
_PAGE_SECONDS = 0.25

#: Seconds between an answer and its report.
_PAUSE = 0.005

#: Of faults, and of failures of a unit by one cause, this many are described within these seconds.
_DESCRIBED, _DESCRIBED_SECONDS = 10, 60.0


class Reporter:
    """Each call gets an id of its own, by which its lines in the log belong together."""

    def __init__(self, scheduler: Scheduler, decisions: logs.DecisionLog | None) -> None:
        self._scheduler = scheduler
        self._decisions = decisions
        self.metrics = logs.Metrics(scheduler)
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
        self.metrics.discovery.set(moment)
        self.metrics.calls.labels("discover", "ok").inc()
        self.metrics.seconds.labels("discover").observe(seconds)
        counts = ", ".join(f"{len(units)} {key}" for key, units in found.items())
        log.info("[%s] discover %.1f ms: %s", self._next_id(), seconds * 1e3, counts)

    def faulted(self, fault: Fault, method: str) -> None:
        self._page = None
        self.metrics.calls.labels("none", "fault").inc()
        request_id = self._next_id()
        if (more := self._more("fault", fault.code)) is not None:
            words = method[:80], fault.sentence, fault.code, more
            log.warning("[%s] %r refused: %s (fault %d)%s", request_id, *words)

    def metrics_page(self) -> Response:
        now = time.monotonic()
        if self._page is None or self._notes or now > self._page_expires:
            self._report_all()
            self._page = Response(self.metrics.page(), CONTENT_TYPE)
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
        self.metrics.answered(answer, seconds)
        question = answer.question
        log.info(
            "[%s] %s vm=%s hosts=%d out=%d %.1f ms: %s",
            request_id,
            question.method,
            question.vm or "-",
            len(question.hosts),
            answer.hosts_out,
            seconds * 1e3,
            " ".join(starmap(_unit_time, answer.outcomes.items())) or "no units",
        )
        for unit, outcome in answer.outcomes.items():
            self._log_unit(request_id, unit, outcome)
        # Which unit dropped which host is worth its time only where it is logged or recorded.
        if log.isEnabledFor(logging.DEBUG) or self._decisions is not None:
            fallen = self._scheduler.fallen(answer)
            for host, units in fallen.items():
                log.debug("[%s] host %s: dropped by %s", request_id, host, ", ".join(units))
            if self._decisions is not None:
                self._decisions.record(request_id, answer, seconds, fallen)

    def _log_unit(self, request_id: str, unit: str, outcome: Outcome) -> None:
        errors = outcome.errors
        if (failure := outcome.failure) is not None:
            # Names of units that are missing are what a caller makes up; what refuses a VM is always said.
            kind = "" if failure.cause is Cause.MISSING else unit
            more = "" if failure.cause is Cause.REFUSED else self._more(kind, failure.cause)
            if more is None:
                errors = ""
            else:
                log.warning("[%s] %s %s%s", request_id, unit, failure.sentence, more)
        for text in (outcome.printed, errors):
            for line in text.splitlines():
                log.info("[%s] %s: %s", request_id, unit, line)

    def _more(self, *kind: object) -> str | None:
        """What is added to a line that says how many of its kind were left out; None if it is one of them."""
        count = self._described.left_out(kind)
        return f"; {count} more were not described" if count else None if count is None else ""

    def _next_id(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"


def _unit_time(unit: str, outcome: Outcome) -> str:
    failed = f" FAILED ({outcome.failure.cause.value})" if outcome.failure else ""
    return f"{unit}={outcome.seconds * 1e3:.1f}ms{failed}"


_OWN_ERROR = Fault(xmlrpc.INTERNAL_ERROR, "the proxy erred; its log says more")


class Endpoint:
    """Answers what comes over HTTP: calls by POST, and `/metrics` by GET."""

    def __init__(self, scheduler: Scheduler, reporter: Reporter, settings: Settings) -> None:
        self._scheduler = scheduler
        self.reporter = reporter
        self._settings = settings
        #: The engine's last discovery, in milliseconds since the epoch.
        self._discovered_ms = 0
        self._asking: set[asyncio.Task[None]] = set()

    def answer(self, request: HttpRequest, respond: Respond) -> None:
        """Raises `HttpError` for what is no call."""
        head = request.head
        if asks_for_metrics(head):
            respond(self.reporter.metrics_page())
            return
        if head.method != "POST":
            raise HttpError(405, "calls come by POST")
        if head.path not in {"/", "/RPC2"}:
            raise HttpError(404, "calls go to /")
        check_content(head)
        by_hand = TROUBLE_SHOOTING in head.headers
        task = asyncio.get_running_loop().create_task(self._answer_call(request.body, by_hand, respond))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _answer_call(self, body: bytes, by_hand: bool, respond: Respond) -> None:
        arrived, method = time.monotonic(), "unread"
        try:
            method, parameters = xmlrpc.read_call(body, self._settings.server.most_elements)
            if method == "discover":
                xmlrpc.check_count(method, parameters)
                answer, report = await self._discover(by_hand)
            else:
                question = xmlrpc.read_question(method, parameters)
                found = await self._scheduler.answer(question, arrived, by_hand)
                answer = xmlrpc.answer(found.result_code, found.result, found.plugin_errors)
                report = partial(self.reporter.answered, found, time.monotonic() - arrived)
        except Exception as error:
            fault = error if isinstance(error, Fault) else _OWN_ERROR
            if fault is _OWN_ERROR:
                log.exception("a call of %r ended by an error of the proxy's own", method[:80])
            answer = xmlrpc.fault(fault.code, fault.sentence)
            report = partial(self.reporter.faulted, fault, method)
        respond(Response(answer))
        report()

    async def _discover(self, by_hand: bool) -> tuple[bytes, Callable[[], None]]:
        """Answer an administrator at once, and the engine late, with descriptions that it has not stored yet.

        The engine disables all external units when it starts, in a transaction that may not be committed yet
        when its thread of discovery compares our answer with the units as they were: then it finds nothing to
        change, writes nothing, and all stay disabled. A description that differs makes it write, which waits
        for that transaction; most often it has ended by then. Source: the engine's SchedulingManager and
        ExternalSchedulerDiscovery.
        """
        if by_hand:
            return xmlrpc.response(self._scheduler.discover()), lambda: None
        await asyncio.sleep(self._settings.calls.discovery_seconds)
        began = time.monotonic()
        self._discovered_ms = max(self._discovered_ms + 1, int(time.time() * 1000))
        moment = datetime.fromtimestamp(self._discovered_ms / 1000, UTC)
        found = self._scheduler.discover(
            f" [discovered {moment:%Y-%m-%d %H:%M:%S}.{self._discovered_ms % 1000:03} UTC]"
        )
        answer, seconds = xmlrpc.response(found), time.monotonic() - began
        return answer, partial(self.reporter.discovered, found, seconds, self._discovered_ms / 1000)


#: Logs, plugins' interpreters, what a reload opens in addition; of a worker its connection, a handle and its
#: standard error.
_OTHER_DESCRIPTORS, _FOR_A_WORKER = 32, 3

#: Reports to plugins that the reasons for which they drop hosts are recorded, if their answer has them.
REASONS_ARE_RECORDED = {"OVIRT_SCHEDULER_PROXY_RECORDS": "reasons"}


def run(settings: Settings, record: Path | None) -> None:
    """Serve until SIGTERM or SIGINT; decisions go into `record`. Raises `UserError` if that cannot begin."""
    log_handler = logs.set_up(settings.log)
    context = tls_context(settings.server)
    decisions = None if record is None else logs.DecisionLog(record, settings.decisions)
    if decisions is not None:
        os.environ.update(REASONS_ARE_RECORDED)
    try:
        asyncio.run(_serve(settings, context, decisions))
    finally:
        end_children(zygotes=True)  # nothing that a plugin ever started may outlive the proxy
        log.info("stopped")
        log_handler.close()


async def _serve(
    settings: Settings, context: ssl.SSLContext | None, decisions: logs.DecisionLog | None
) -> None:
    """Open the port once the workers are warm, and look after all until it is time to stop."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)  # there is nothing to reload yet
    reloader = Reloader(settings, await load_all(settings))
    scheduler = Scheduler(lambda: reloader.plugins, settings)
    reporter = Reporter(scheduler, decisions)
    endpoint = Endpoint(scheduler, reporter, settings)
    try:
        if stopped.is_set():
            return
        server = settings.server
        others = _OTHER_DESCRIPTORS + _FOR_A_WORKER * settings.workers.most * len(settings.plugins)
        most = possible_connections(server.most_connections, others)
        limits = Limits(most, server.idle_seconds, server.request_seconds, server.request_seconds)
        gate = Gate(server)
        admit = partial(gate.admit, endpoint.answer, server.body_mib << 20)
        listener = Listener(open_socket(server.listen), limits, admit, reporter.metrics.closed.inc)
        url = listener.start(context)
        gc.freeze()  # what stands now will stand for long: no collection need look at it
        loop.add_signal_handler(signal.SIGHUP, reloader.reload_all)
        notifier = Notifier()
        tasks = [loop.create_task(reloader.watch()), loop.create_task(notifier.keep_alive())]
        log.info("listening on %s with %d units", url, len(reloader.plugins.units))
        print(f"ovirt-scheduler-proxy: listening on {url}", flush=True)
        notifier.ready()
        await stopped.wait()
        notifier.stopping()
        for task in tasks:
            task.cancel()
        await listener.close(settings.calls.deadline_seconds)
        gate.close()
    finally:
        await reloader.close()
        reporter.close()
