"""The form that a client asks for its answers in: XML, unless it would rather have JSON."""

from __future__ import annotations

from werkzeug import Request, Response

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
    if not request.accept_mimetypes:
        return XML_TYPE
    return request.accept_mimetypes.best_match([XML_TYPE, JSON_TYPE])
