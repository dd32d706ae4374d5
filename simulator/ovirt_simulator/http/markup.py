"""What a request ends in: XML as text, the engine's several kinds of fault, and its pages.

Plain text is many times faster than trees, and a list of ten thousand VMs must not stall the engine that it
shows. Everything here returns markup that may be joined; an empty string stands for "nothing".
"""

import re
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import quote
from xml.sax.saxutils import escape

import msgspec
from werkzeug import Response

DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'

API = "/ovirt-engine/api"

#: Text that stands for itself in content and in attributes: nearly all, so looked at first.
_PLAIN = re.compile('[^<>&"\x00-\x1f\ud800-\udfff\ufffe\uffff]*')
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Value: TypeAlias = "str | int | float | bool | datetime | None"


def text(tag: str, value: Value) -> str:
    """An element that holds a value; nothing when the value is None."""
    if value is None:
        return ""
    return f"<{tag}>{content(value)}</{tag}>"


def content(value: str | int | float | bool | datetime) -> str:
    """A value as character data."""
    if isinstance(value, str):
        return _escaped(value, {"\r": "&#13;"})
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, float):
        return f"{value:.7f}".rstrip("0").rstrip(".")
    return str(value)


def attribute(value: str) -> str:
    """A value as the content of a quoted attribute."""
    return _escaped(value, {'"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"})


def _escaped(value: str, more: dict[str, str]) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return escape(_ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", value), more)


def element(tag: str, *children: str) -> str:
    """An element around markup; without any it closes itself."""
    inside = "".join(children)
    return f"<{tag}>{inside}</{tag}>" if inside else f"<{tag}/>"


def lines(*children: str) -> str:
    """Children of an entity, each on a line of its own."""
    return "\n".join(filter(None, children))


def entity(tag: str, href: str | None, entity_id: str, *children: str) -> str:
    """An entity with its address and id; `href` is None where the engine gives none."""
    start = f'<{tag} id="{attribute(entity_id)}"'
    if href is not None:
        start = f'<{tag} href="{href}" id="{attribute(entity_id)}"'
    inside = lines(*children)
    return f"{start}>\n{inside}\n</{tag}>" if inside else f"{start}/>"


def collection(tag: str, items: list[str]) -> str:
    return f"<{tag}>\n" + "\n".join(items) + f"\n</{tag}>" if items else f"<{tag}/>"


def path(*segments: str) -> str:
    """The address of a resource: `path("vms", vm_id)` is /ovirt-engine/api/vms/ID."""
    return "/".join([API, *(quote(segment, safe="") for segment in segments)])


PLAIN_XML = "application/xml"
XML = f"{PLAIN_XML};charset=UTF-8"
JSON = "application/json"
HTML = "text/html;charset=UTF-8"

BACKEND = "Operation Failed"
MALFORMED_ID = "Operation failed"


class Refusal(Exception):
    """A request that ends in something else than its entity; `response` is the whole answer."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


def document(root: str, status: int = 200) -> Response:
    """Answer with an XML document around the root element."""
    return Response(f"{DECLARATION}{root}\n", status, content_type=XML)


def fault_element(detail: str, reason: str = BACKEND) -> str:
    return element("fault", text("detail", detail), text("reason", reason))


def fault(status: int, detail: str, reason: str = BACKEND) -> Refusal:
    """Refuse with a `<fault>` of its own, as everything but actions does."""
    return Refusal(document(fault_element(detail, reason), status))


def absent() -> Refusal:
    """Refuse as a GET of an unknown entity is refused: 404 and an empty body."""
    response = Response(b"", 404)
    del response.headers["Content-Type"]
    return Refusal(response)


def incomplete(parameter: str, name: str) -> Refusal:
    """Refuse a body that lacks what is mandatory, naming it as the engine does."""
    detail = f"Parameter '{parameter}.{name}' is mandatory but was not provided."
    return fault(400, detail, "Input validation failed.")


def usage() -> Refusal:
    """Refuse a body that cannot be read."""
    return fault(400, "For correct usage, see: /ovirt-engine/apidoc", "Request syntactically incorrect.")


def not_simulated(what: str) -> Refusal:
    """Refuse what an engine has and the simulator has not."""
    return fault(501, f"The simulator does not know {what}; see its documentation.", "Not simulated")


def denied() -> Refusal:
    """Refuse a query for which the user's permits do not suffice: 400, not 403."""
    return fault(400, "[Query execution failed due to insufficient permissions.]")


def json(value: object, status: int = 200) -> Response:
    """Answer with JSON, as all does that is no API."""
    return Response(msgspec.json.encode(value) + b"\n", status, content_type=JSON)


def page(status: int, said: str = "") -> Response:
    """Answer with the container's own error page, as whatever fails outside of the API's code does."""
    inside = content(said or HTTPStatus(status).phrase)
    head, body = element("head", text("title", "Error")), element("body", inside)
    return Response(element("html", head, body), status, content_type=HTML)
