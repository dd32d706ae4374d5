"""What a request ends in: documents, the engine's several kinds of fault, and its pages."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from werkzeug import Response

from ovirt_simulator.http import markup

XML = "application/xml;charset=UTF-8"
JSON = "application/json"
HTML = "text/html;charset=UTF-8"

BACKEND = "Operation Failed"
MALFORMED_ID = "Operation failed"
INCOMPLETE = "Incomplete parameters"


class Refusal(Exception):
    """A request that ends in something else than its entity; `response` is the whole answer."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


def document(root: str, status: int = 200) -> Response:
    """Answer with an XML document around the root element."""
    return Response(markup.document(root), status, content_type=XML)


def fault_element(detail: str, reason: str = BACKEND) -> str:
    return markup.element("fault", markup.text("detail", detail), markup.text("reason", reason))


def fault(status: int, detail: str, reason: str = BACKEND) -> Refusal:
    """Refuse with a `<fault>` of its own, as everything but actions does."""
    return Refusal(document(fault_element(detail, reason), status))


def absent() -> Refusal:
    """Refuse as a GET of an unknown entity is refused: 404 and an empty body."""
    response = Response(b"", 404)
    del response.headers["Content-Type"]
    return Refusal(response)


def incomplete(type_name: str, *missing: str, verb: str = "add") -> Refusal:
    """Refuse a body that lacks what is mandatory, naming it as the engine does."""
    return fault(400, f"{type_name} [{', '.join(missing)}] required for {verb}", INCOMPLETE)


def usage() -> Refusal:
    """Refuse a body that cannot be read: a usage message, not a fault, which no client expects."""
    message = "Request syntactically incorrect."
    return Refusal(document(markup.element("usage_message", markup.text("message", message)), 400))


def not_simulated(what: str) -> Refusal:
    """Refuse what an engine has and the simulator has not."""
    return fault(501, f"The simulator does not know {what}; see its documentation.", "Not simulated")


def denied() -> Refusal:
    """Refuse a query for which the user's permits do not suffice: 400, not 403."""
    return fault(400, "[Query execution failed due to insufficient permissions.]")


def status_line(status: int) -> str:
    """Give a status with its phrase as an engine writes it: 409 Conflict."""
    return f"{status} {HTTPStatus(status).phrase}"


def options(methods: Iterable[str]) -> Response:
    """Answer what can be done at an address; 404 where there is nothing."""
    words = ", ".join(sorted({*methods, "OPTIONS"}))
    if words == "OPTIONS":
        return absent().response
    return Response(words, headers={"Allow": words}, content_type="text/plain;charset=UTF-8")


def page(status: int, text: str = "") -> Response:
    """Answer with the container's own error page, as whatever fails outside of the API's code does."""
    phrase = HTTPStatus(status).phrase
    inside = markup.element("head", markup.text("title", "Error")) + markup.element(
        "body", markup.content(text or phrase)
    )
    return Response(markup.element("html", inside), status, content_type=HTML)
