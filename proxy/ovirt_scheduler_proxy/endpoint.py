"""From a request to its response: checks, reads the call, has it answered, and reports it afterwards."""

from __future__ import annotations

import logging
import time
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

    def __init__(self, scheduler: Scheduler, reporter: Reporter, most_elements: int) -> None:
        self._scheduler = scheduler
        self._reporter = reporter
        self._most_elements = most_elements

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
                found = self._scheduler.discover()
                self._reporter.discovered(found, arrived)
                respond(Response(writing.response(found)))
            else:
                question = read_question(method, call.parameters)
                self._scheduler.answer(question, arrived, partial(self._send, arrived, respond), by_hand)
        except Fault as fault:
            self._refuse(fault, method, respond)
        except Exception:
            log.exception("a call of %r ended by an error of the proxy's own", method[:80])
            self._refuse(_OWN_ERROR, method, respond)

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
