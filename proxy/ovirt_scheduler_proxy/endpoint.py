"""From a request to its response: checks, reads the call, has it answered, and reports it afterwards."""

from __future__ import annotations

import logging
import time

from .contract.arguments import read_question, take_none
from .contract.scheduler import Scheduler
from .reporting import Reporter
from .server.access import Gate, check_content
from .server.request import Head, HttpError, RequestReader
from .server.response import Response
from .wire import writing
from .wire.fault import INTERNAL_ERROR, Fault
from .wire.reading import read_call

log = logging.getLogger(__name__)

#: A request with this header is an administrator's, who wants to see every failure.
TROUBLE_SHOOTING = "x-trouble-shooting"

_PATHS = ("/", "/RPC2")


class Endpoint:
    """Answers what comes over HTTP: calls by POST, and `/metrics` by GET."""

    def __init__(self, scheduler: Scheduler, reporter: Reporter, gate: Gate, most_elements: int) -> None:
        self._scheduler = scheduler
        self._reporter = reporter
        self._gate = gate
        self._most_elements = most_elements

    def answer(self, head: Head, reader: RequestReader) -> Response:
        """Raises `HttpError` for what is no call."""
        self._gate.check(head)
        if head.method == "GET" and head.path == "/metrics":
            return self._reporter.metrics_page()
        if head.method != "POST":
            raise HttpError(405, "calls come by POST")
        if head.path not in _PATHS:
            raise HttpError(404, "calls go to /")
        check_content(head)
        return self._answer_call(reader.read_body(head), TROUBLE_SHOOTING not in head.headers)

    def _answer_call(self, body: bytes, damped: bool) -> Response:
        arrived = time.monotonic()
        method = "unread"
        try:
            call = read_call(body, self._most_elements)
            method = call.method
            if method == "discover":
                take_none(method, call.parameters)
                found = self._scheduler.discover()
                return Response(
                    writing.response(found), afterwards=lambda: self._reporter.discovered(found, arrived)
                )
            question = read_question(method, call.parameters)
            answer = self._scheduler.answer(question, arrived, damped)
            seconds = time.monotonic() - arrived
            return Response(
                writing.response(answer.reply()), afterwards=lambda: self._reporter.answered(answer, seconds)
            )
        except Fault as fault:
            return self._fault(fault, method)
        except Exception:
            log.exception("a call of %s ended by an error of the proxy's own", method[:80])
            return self._fault(Fault(INTERNAL_ERROR, "the proxy erred; its log says more"), method)

    def _fault(self, fault: Fault, method: str) -> Response:
        return Response(
            writing.fault(fault.code, fault.sentence),
            afterwards=lambda: self._reporter.faulted(fault, method),
        )
