"""Actions: POSTs that do something, and answer with what they were asked, the outcome and the job."""

from __future__ import annotations

from collections.abc import Callable

from werkzeug import Response

from ovirt_simulator.core.entities import Job
from ovirt_simulator.core.rejections import Rejected
from ovirt_simulator.http import answers, markup
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import NOT_AUTHORIZED, Call
from ovirt_simulator.http.users import Permit


def act(call: Call, permit: Permit, tag: str, subject: str, command: Callable[[Body], Job]) -> Response:
    """Carry an action out and answer it: 200 with its job, or its fault inside of what was asked.

    `subject` is what the action is done to, rendered as the element `tag`. A "complete" action is accepted
    and begun; its effect shows later.
    """
    body = call.body("action")
    if not call.user.may(permit):
        return failed(body, 403, NOT_AUTHORIZED)
    try:
        job = command(body)
    except Rejected as rejected:
        return failed(body, rejected.http_status, rejected.detail)
    outcome = {
        tag: subject,
        "job": markup.entity("job", markup.path("jobs", job.id), job.id),
        "status": markup.text("status", "complete"),
    }
    return _action(body, 200, **outcome)


def failed(body: Body, status: int, detail: str) -> Response:
    """Answer with the action as it was asked, the fault inside of it."""
    return _action(body, status, fault=answers.fault_element(detail), status=markup.text("status", "failed"))


def done() -> Response:
    """Answer a DELETE, or a POST of a member, which show nothing but that they are complete."""
    return answers.document(markup.element("action", markup.text("status", "complete")))


def _action(body: Body, http_status: int, /, **outcome: str) -> Response:
    children = body.elements() | outcome
    root = markup.element("action", *(children[tag] for tag in sorted(children)))
    return answers.document(root, http_status)
