"""The running proxy: loads the plugins, opens the port, answers calls, handles signals and the watchdog."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import ssl
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ovirt_scheduler_proxy import logs
from ovirt_scheduler_proxy import xmlrpc as writing
from ovirt_scheduler_proxy.http import Gate, asks_for_metrics, check_content, open_socket, tls_context
from ovirt_scheduler_proxy.logs import DecisionLog
from ovirt_scheduler_proxy.plugins import Reloader, load_all
from ovirt_scheduler_proxy.processes import end_children
from ovirt_scheduler_proxy.reporting import Reporter
from ovirt_scheduler_proxy.scheduler import Question, Scheduler, check_count, read_question
from ovirt_scheduler_proxy.settings import Settings
from ovirt_scheduler_proxy.xmlrpc import INTERNAL_ERROR, Fault, read_call
from ovirt_service.daemon import Notifier
from ovirt_service.http.connection import HttpError, HttpRequest, Respond, Response
from ovirt_service.http.listener import Limits, Listener, raise_limit

log = logging.getLogger(__name__)

#: Logs, plugins' interpreters, what a reload opens in addition.
_OTHERS = 32
#: A connection, a handle and its standard error.
_FOR_A_WORKER = 3
#: Fewer connections than this are of no use.
_LEAST = 8


def connections(settings: Settings) -> int:
    """How many connections may stand, once as many descriptors as are wanted, or allowed, are there."""
    wanted = settings.server.most_connections
    workers = _FOR_A_WORKER * settings.workers.most * len(settings.plugins)
    limit = raise_limit(_OTHERS + workers + wanted)
    possible = min(wanted, max(_LEAST, limit - _OTHERS - workers))
    if possible < wanted:
        log.warning(
            "only %d file descriptors are allowed (LimitNOFILE, ulimit -n): %d connections at a time in place"
            " of %d",
            limit,
            possible,
            wanted,
        )
    return possible


#: A request with this header is an administrator's, who wants to see every failure.
TROUBLE_SHOOTING = "x-trouble-shooting"

_PATHS = ("/", "/RPC2")

_OWN_ERROR = Fault(INTERNAL_ERROR, "the proxy erred; its log says more")


class Endpoint:
    """Answers what comes over HTTP: calls by POST, and `/metrics` by GET."""

    def __init__(
        self, scheduler: Scheduler, reporter: Reporter, most_elements: int, discovery_seconds: float
    ) -> None:
        self._scheduler = scheduler
        self._reporter = reporter
        self._most_elements = most_elements
        self._discovery_seconds = discovery_seconds
        #: The engine's last discovery, in milliseconds since the epoch.
        self._discovered_ms = 0
        self._asking: set[asyncio.Task[None]] = set()

    def answer(self, request: HttpRequest, respond: Respond) -> None:
        """Raises `HttpError` for what is no call."""
        head = request.head
        if asks_for_metrics(head):
            respond(self._reporter.metrics_page())
            return
        if head.method != "POST":
            raise HttpError(405, "calls come by POST")
        if head.path not in _PATHS:
            raise HttpError(404, "calls go to /")
        check_content(head)
        self._answer_call(request.body, TROUBLE_SHOOTING in head.headers, respond)

    def _answer_call(self, body: bytes, by_hand: bool, respond: Respond) -> None:
        arrived = time.monotonic()
        method = "unread"
        try:
            call = read_call(body, self._most_elements)
            method = call.method
            if method == "discover":
                check_count(method, call.parameters)
                self._discover(by_hand, respond)
            else:
                question = read_question(method, call.parameters)
                task = asyncio.get_running_loop().create_task(
                    self._answer_question(question, arrived, by_hand, respond)
                )
                self._asking.add(task)
                task.add_done_callback(self._asking.discard)
        except Fault as fault:
            self._refuse(fault, method, respond)
        except Exception:
            log.exception("a call of %r ended by an error of the proxy's own", method[:80])
            self._refuse(_OWN_ERROR, method, respond)

    def _discover(self, by_hand: bool, respond: Respond) -> None:
        """Answer an administrator at once, and the engine late, with descriptions that it has not stored yet.

        The engine disables all external units when it starts, in a transaction that may not be committed yet
        when its thread of discovery compares our answer with the units as they were: then it finds nothing to
        change, writes nothing, and all stay disabled. A description that differs makes it write, which waits
        for that transaction; most often it has ended by then. Source: the engine's SchedulingManager and
        ExternalSchedulerDiscovery.
        """
        if by_hand:
            respond(Response(writing.response(self._scheduler.discover())))
        else:
            loop = asyncio.get_running_loop()
            loop.call_later(self._discovery_seconds, self._answer_discovery, respond)

    def _answer_discovery(self, respond: Respond) -> None:
        began = time.monotonic()
        try:
            self._discovered_ms = max(self._discovered_ms + 1, int(time.time() * 1000))
            moment = datetime.fromtimestamp(self._discovered_ms / 1000, UTC)
            found = self._scheduler.discover(
                f" [discovered {moment:%Y-%m-%d %H:%M:%S}.{self._discovered_ms % 1000:03} UTC]"
            )
            body = writing.response(found)
        except Exception:
            log.exception("discovery ended by an error of the proxy's own")
            self._refuse(_OWN_ERROR, "discover", respond)
            return
        respond(Response(body))
        self._reporter.discovered(found, time.monotonic() - began, self._discovered_ms / 1000)

    async def _answer_question(
        self, question: Question, arrived: float, by_hand: bool, respond: Respond
    ) -> None:
        try:
            answer = await self._scheduler.answer(question, arrived, by_hand)
            body = writing.answer(answer.result_code, answer.result, answer.plugin_errors)
        except Exception:
            log.exception("the answers of the units could not be put together")
            self._refuse(_OWN_ERROR, "an answer", respond)
            return
        seconds = time.monotonic() - arrived
        respond(Response(body))
        self._reporter.answered(answer, seconds)

    def _refuse(self, fault: Fault, method: str, respond: Respond) -> None:
        self._reporter.faulted(fault, method)
        respond(Response(writing.fault(fault.code, fault.sentence)))


#: Reports to plugins that the reasons for which they drop hosts are recorded, if their answer has them.
REASONS_ARE_RECORDED = {"OVIRT_SCHEDULER_PROXY_RECORDS": "reasons"}


def run(settings: Settings, record: Path | None) -> None:
    """Serve until SIGTERM or SIGINT; decisions go into `record`. Raises `UserError` if that cannot begin."""
    log_handler = logs.set_up(settings.log)
    context = tls_context(settings.server)
    decisions = None if record is None else DecisionLog(record, settings.decisions)
    if decisions is not None:
        os.environ.update(REASONS_ARE_RECORDED)
    try:
        asyncio.run(_serve(settings, context, decisions))
    finally:
        end_children(zygotes=True)  # nothing that a plugin ever started may outlive the proxy
        log.info("stopped")
        log_handler.close()


async def _serve(settings: Settings, context: ssl.SSLContext | None, decisions: DecisionLog | None) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)  # there is nothing to reload yet
    plugins = await load_all(settings)
    scheduler = Scheduler(plugins, settings.calls.deadline_seconds, settings.rejects)
    reporter = Reporter(scheduler, decisions)
    reloader = Reloader(settings, scheduler)
    try:
        if not stopped.is_set():
            await _attend(settings, context, scheduler, reporter, reloader, stopped)
    finally:
        await reloader.close()
        reporter.close()


async def _attend(
    settings: Settings,
    context: ssl.SSLContext | None,
    scheduler: Scheduler,
    reporter: Reporter,
    reloader: Reloader,
    stopped: asyncio.Event,
) -> None:
    """Open the port, now that the workers are warm, and look after all until it is time to stop."""
    server = settings.server
    seconds = server.request_seconds
    limits = Limits(connections(settings), server.idle_seconds, seconds, seconds)
    endpoint = Endpoint(scheduler, reporter, server.most_elements, settings.calls.discovery_seconds)
    gate = Gate(server)
    admit = partial(gate.admit, endpoint.answer, server.body_mib << 20)
    listener = Listener(open_socket(server.listen), limits, admit, reporter.connection_closed)
    url = listener.start(context)
    gc.freeze()  # what stands now will stand for long: no collection need look at it
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, reloader.reload_all)
    notifier = Notifier()
    tasks = [loop.create_task(reloader.watch()), loop.create_task(notifier.keep_alive())]
    log.info("listening on %s with %d units", url, len(scheduler.plugins.units))
    print(f"ovirt-scheduler-proxy: listening on {url}", flush=True)
    notifier.ready()
    await stopped.wait()
    notifier.stopping()
    for task in tasks:
        task.cancel()
    await listener.close(settings.calls.deadline_seconds)
    gate.close()
