"""The form that a client asks for its answers in: XML, unless it would rather have JSON.

It says so in `Accept`, of which parameters of types such as `charset` count for nothing, or in the parameter
`accept` of the address, which stands before that.
"""

from __future__ import annotations

from werkzeug import Request, Response
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header

from ovirt_simulator.http.json_form import JSON_TYPE, XML_TYPE, to_json


def anything_here(request: Request) -> bool:
    """Say whether the client takes XML or JSON; what says nothing takes anything."""
    return _best(request) is not None


def in_its_form(request: Request, response: Response) -> Response:
    """Give an answer in the form that the client asks for; pages stay as they are."""
    if response.mimetype == XML_TYPE and _best(request) == JSON_TYPE:
        response.data = to_json(response.get_data())
        response.content_type = JSON_TYPE
    return response


def _best(request: Request) -> str | None:
    asked = request.accept_mimetypes
    if "accept" in request.args:
        asked = parse_accept_header(request.args["accept"], MIMEAccept)
    if not asked:
        return XML_TYPE
    plain = MIMEAccept([(kind.partition(";")[0].strip(), quality) for kind, quality in asked])
    return plain.best_match([XML_TYPE, JSON_TYPE])
