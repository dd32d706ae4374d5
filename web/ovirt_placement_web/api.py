"""`/api/v1`: the documents that `--json` prints, for programs with a token of the engine and for the page."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.connection.user_tokens import Refused
from ovirt_placement.engine.reading.rights import Rights, read_rights
from ovirt_placement_web.api_questions import QUESTIONS, Problem, Question
from ovirt_placement_web.log_in import address_of
from ovirt_placement_web.openapi import description
from ovirt_placement_web.site import Refusal, Site, check_query, site_of
from ovirt_service.errors import UserError


def routes() -> list[BaseRoute]:
    return [*(Route(one.path, _endpoint(one)) for one in QUESTIONS), Route("/openapi.json", _described)]


def _endpoint(question: Question) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        try:
            return _answered(question, request)
        except Refusal as refusal:
            return problem(refusal.text, refusal.status, refusal.headers)
        except UserError as error:
            return problem(str(error), 503)

    return endpoint


def _answered(question: Question, request: Request) -> Response:
    site = site_of(request)
    check_query(request, question.keys)
    authenticate(site, request)
    view = site.keeper.view
    if not view.known:
        raise Refusal(503, view.error or "nothing is known yet")
    return _json(question.ask(site, request, view))


def authenticate(site: Site, request: Request) -> None:
    """Raise `Refusal` unless a person with a session asks, or a program with a token of an administrator."""
    if site.session(request, use="live-update" not in request.headers) is not None:
        return
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token:
        raise Refusal(401, "log in, or send a token of the engine", {"WWW-Authenticate": "Bearer"})
    token, address = token.strip(), address_of(request)
    if not site.bearers.rights(token, lambda: _rights(site, token, address)).administrator:
        raise Refusal(403, "this needs an admin role in the engine")


def problem(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    """Why there is no answer, for a program."""
    return _json(Problem(text), status, headers)


def _rights(site: Site, token: str, address: str) -> Rights:
    """What the engine says of a token now."""
    if (wait := site.throttle.begin("", address)) > 0:
        raise Refusal(429, "too many tokens were refused", {"Retry-After": str(math.ceil(wait))})
    try:
        return read_rights(site.tokens, token)
    except Refused:
        site.throttle.failed("", address)
        raise Refusal(401, "the engine does not take this token", {"WWW-Authenticate": "Bearer"}) from None
    except EngineAway:
        raise Refusal(503, "the engine does not answer, so the token cannot be checked") from None
    finally:
        site.throttle.end("", address)


def _described(request: Request) -> Response:
    check_query(request, [])
    return _json(description(site_of(request).root))


def _json(answer: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = msgspec.json.encode(answer)
    return Response(body, status, headers, media_type="application/json")
