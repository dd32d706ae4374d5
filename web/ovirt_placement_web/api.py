"""`/api/v1`: the documents that `--json` prints, for programs with a token of the engine and for the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ovirt_placement.engine.connection.failures import EngineAway
from ovirt_placement.engine.connection.sso import NoRole, Refused
from ovirt_placement_web.api_questions import Address, Problem, addresses
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.log_in import counted_address
from ovirt_placement_web.openapi import description
from ovirt_placement_web.site import NO_ADMIN, Site, check_query, site_of
from ovirt_service.errors import UserError


def routes() -> list[BaseRoute]:
    return [
        *(Route(one.route.path, _endpoint(one)) for one in addresses()),
        Route("/openapi.json", _described),
    ]


def _endpoint(asked: Address) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return await _answered(asked, request)
        except Refusal as refusal:
            return problem(refusal)
        except UserError as error:
            return problem(Refusal(503, str(error)))

    return endpoint


async def _answered(asked: Address, request: Request) -> Response:
    site = site_of(request)
    check_query(request, asked.keys)
    asker = await authenticate(site, request)
    view = site.keeper.view
    if not view.known:
        raise Refusal(503, view.error or "nothing is known yet")
    kind = site.bounds.checks if asked.route.dear else site.bounds.views
    return await kind.run(asker, lambda: _json(asked.ask(site, request, view)))


async def authenticate(site: Site, request: Request) -> Hashable:
    """Who asks: a person with a session, or a program with a token of an administrator; else `Refusal`."""
    session = site.session(request, use="live-update" not in request.headers)
    if session is not None:
        return session
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token:
        raise Refusal(401, "log in, or send a token of the engine", {"WWW-Authenticate": "Bearer"})
    token = token.strip()
    try:
        rights = await site.bearers.rights(token, counted_address(request))
    except NoRole:
        raise Refusal(403, NO_ADMIN) from None
    except Refused:
        raise Refusal(401, "the engine does not take this token", {"WWW-Authenticate": "Bearer"}) from None
    except EngineAway:
        raise Refusal(503, "the engine does not answer, so the token cannot be checked") from None
    if not rights.administrator:
        raise Refusal(403, NO_ADMIN)
    return token


def problem(refusal: Refusal) -> Response:
    """Why there is no answer, for a program."""
    return _json(Problem(refusal.text), refusal.status, refusal.headers)


def _described(request: Request) -> Response:
    check_query(request, [])
    return _json(description(site_of(request).root))


def _json(answer: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = msgspec.json.encode(answer)
    return Response(body, status, headers, media_type="application/json")
