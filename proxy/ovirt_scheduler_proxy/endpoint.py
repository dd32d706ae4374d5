"""From a request to its response: checks, reads the call, has it answered, and reports it afterwards."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from functools import partial

from ovirt_service.http.connection import Respond
from ovirt_service.http.request import HttpError, HttpRequest
from ovirt_service.http.response import Response

from .contract.answer import Answer
from .contract.arguments import read_question, take_none
from .contract.scheduler import Scheduler
from .http.access import asks_for_metrics, check_content
from .reporting import Reporter
from .xmlrpc import writing
from .xmlrpc.fault import INTERNAL_ERROR, Fault
from .xmlrpc.reading import read_call

log = logging.getLogger(__name__)

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
                take_none(method, call.parameters)
                self._discover(by_hand, respond)
            else:
                question = read_question(method, call.parameters)
                self._scheduler.answer(question, arrived, partial(self._send, arrived, respond), by_hand)
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
            found = self._scheduler.discover(_stamp(self._discovered_ms))
            body = writing.response(found)
        except Exception:
            log.exception("discovery ended by an error of the proxy's own")
            self._refuse(_OWN_ERROR, "discover", respond)
            return
        respond(Response(body))
        self._reporter.discovered(found, time.monotonic() - began, self._discovered_ms / 1000)

    def _send(self, arrived: float, respond: Respond, answer: Answer | None) -> None:
        if answer is None:
            self._refuse(_OWN_ERROR, "an answer", respond)
            return
        body = writing.answer(answer.result_code, answer.result, answer.plugin_errors)
        seconds = time.monotonic() - arrived
        respond(Response(body))
        self._reporter.answered(answer, seconds)

    def _refuse(self, fault: Fault, method: str, respond: Respond) -> None:
        self._reporter.faulted(fault, method)
        respond(Response(writing.fault(fault.code, fault.sentence)))


def _stamp(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"discovered {moment:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03} UTC"
