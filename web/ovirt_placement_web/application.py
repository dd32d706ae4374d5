"""Puts the page together: addresses, what stands before them, and what runs next to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from ovirt_placement.config import Config
from ovirt_placement.engine.connection.sso import UserTokens
from ovirt_placement_web import (
    api,
    drawn_pages,
    group_acts,
    key_acts,
    key_pages,
    lists,
    log_in,
    maintenance_acts,
    maintenance_pages,
    overview,
    pages,
    plan_acts,
    plan_pages,
    rule_acts,
    then_pages,
    vm_pages,
)
from ovirt_placement_web.bearers import Bearers
from ovirt_placement_web.bounds import Refusal, bounds
from ovirt_placement_web.events import EventStream
from ovirt_placement_web.keeper import Keeper
from ovirt_placement_web.made_plans import MadePlans
from ovirt_placement_web.metrics import WebMetrics
from ovirt_placement_web.past import Past
from ovirt_placement_web.questions import Questions
from ovirt_placement_web.security import Guard, TooLarge
from ovirt_placement_web.sessions import Sessions
from ovirt_placement_web.settings import Listening, WebSettings, engine_origin, origins
from ovirt_placement_web.several import ByPath, Place, places
from ovirt_placement_web.site import Site, environment, refused, site_of
from ovirt_placement_web.throttle import Throttle
from ovirt_service.errors import UserError

#: Answers of the API from this many bytes on are compressed.
_LARGE = 100_000
#: How often it is looked which sessions are over, or whose rights are to be read again.
_LOOK_SECONDS = 5.0


def application(config: Config, settings: WebSettings, at: Listening, metrics: WebMetrics) -> ASGIApp:
    """The page as an ASGI application, of all engines; raises `UserError` if a configuration is at fault."""
    shown = places(config, settings)
    sites = tuple(_site(place, settings, shown, metrics) for place in shown)
    named = origins(settings, at, config.source)
    apps = [_of_engine(site, named, at) for site in sites]
    # The first one's life is that of all.
    apps[0].state.sites = sites
    return ByPath(shown[0], apps[0], tuple(zip(shown[1:], apps[1:], strict=True)))


#: A session without a request ends after this time.
_SESSION_IDLE_SECONDS = 1800.0


def _site(place: Place, settings: WebSettings, shown: tuple[Place, ...], metrics: WebMetrics) -> Site:
    config, tokens = place.config, UserTokens(place.config.engine)
    limits = bounds(metrics, streams=settings.streams, streams_each=settings.streams_per_session)
    decisions = config.section("web", WebSettings).decisions
    return Site(
        config=config,
        settings=msgspec.structs.replace(settings, root=place.root),
        keeper=Keeper(config),
        sessions=Sessions(_SESSION_IDLE_SECONDS),
        bounds=limits,
        throttle=Throttle(metrics),
        tokens=tokens,
        questions=Questions(config, Path(decisions) if decisions else None),
        made=MadePlans(config),
        past=Past(config),
        bearers=Bearers(tokens, limits),
        templates=environment(),
        places=shown,
    )


def _of_engine(site: Site, named: tuple[str, ...], at: Listening) -> Starlette:
    """The page of one engine."""
    guard = Middleware(
        Guard,
        origins=named,
        root=site.root,
        framed_by=engine_origin(site.config.engine.url),
        is_tls=at.tls,
    )
    handlers = {Refusal: refused, UserError: _unanswered, HTTPException: _unknown, TooLarge: _too_large}
    app = Starlette(
        routes=[
            Mount(site.root, routes=routes(site)),
            Route("/", pages.start),
            Route(site.root, pages.start),
        ],
        middleware=[guard],
        exception_handlers=handlers,  # type: ignore[arg-type]
        lifespan=_lifespan,
    )
    app.state.site = site
    return app


def routes(site: Site) -> list[BaseRoute]:
    """All that the page answers to, below its root."""
    return [
        Route("/", overview.clusters),
        Route("/summary", pages.summary),
        Route("/cluster/{name}", overview.cluster),
        Route("/cluster/{name}/rules", lists.rules_of_cluster),
        Route("/cluster/{name}/hosts", lists.hosts_of_cluster),
        Route("/cluster/{name}/history", pages.history_of_cluster),
        Route("/vms", lists.vms),
        Route("/hosts", lists.hosts),
        Route("/rules", lists.rules),
        Route("/vm/{name}", vm_pages.vm),
        Route("/vm/{name}/room", plan_pages.room),
        Route("/vm/{name}/then", then_pages.then),
        Route("/host/{name}", pages.host),
        Route("/group/{name}", pages.group),
        Route("/group/{name}/edit", group_acts.edit_form),
        Route("/group/{name}/edit", group_acts.edit, methods=["POST"]),
        Route("/group/{name}/remove", group_acts.remove, methods=["POST"]),
        Route("/cluster/{name}/new-group", group_acts.add_form),
        Route("/cluster/{name}/new-group", group_acts.add, methods=["POST"]),
        Route("/cluster/{name}/rule", rule_acts.rule_form),
        Route("/cluster/{name}/rule", rule_acts.change_rule, methods=["POST"]),
        Route("/map/{name}", drawn_pages.cluster_map),
        Route("/map/{name}/table", drawn_pages.table),
        Route("/ha", drawn_pages.fail),
        Route("/ha/{name}", drawn_pages.failures),
        Route("/history", pages.history),
        Route("/keys", key_pages.keys),
        Route("/keys/set", key_pages.key_form),
        Route("/keys/set", key_acts.set_key, methods=["POST"]),
        Route("/keys/unset", key_acts.unset_key, methods=["POST"]),
        Route("/keys/hosts", key_pages.hosts_form),
        Route("/keys/hosts", key_acts.define, methods=["POST"]),
        Route("/keys/hosts/unset", key_acts.unset_hosts, methods=["POST"]),
        Route("/vm/{name}/keys", key_pages.of_vm),
        Route("/health", pages.health),
        Route("/health", plan_acts.examine, methods=["POST"]),
        Route("/cluster/{name}/pause", plan_acts.pause, methods=["POST"]),
        Route("/cluster/{name}/resume", plan_acts.resume, methods=["POST"]),
        Route("/plan/{name}", plan_pages.plan),
        Route("/plan/{name}/now", plan_pages.plan_now),
        Route("/plan/{name}/undo", plan_pages.undo),
        Route("/plans/{name}/{plan}", plan_pages.plan_named),
        Route("/plan/{name}/approve", plan_acts.approve, methods=["POST"]),
        Route("/plan/{name}/refuse", plan_acts.refuse, methods=["POST"]),
        Route("/plan/{name}/apply", plan_acts.apply, methods=["POST"]),
        Route("/maintenance/{name}", maintenance_pages.maintenance),
        Route("/maintenance/{name}/begin", maintenance_acts.begin, methods=["POST"]),
        Route("/maintenance/{name}/{order:str}", maintenance_acts.order, methods=["POST"]),
        Route("/search", lists.search),
        Route("/log-in", log_in.show),
        Route("/log-in", log_in.log_in, methods=["POST"]),
        Route("/log-in/token", log_in.log_in_by_token, methods=["POST"]),
        Route("/portal", log_in.show_portal),
        Route("/log-out", log_in.log_out, methods=["POST"]),
        Route("/events", EventStream(site)),
        # A map of 10,000 VMs has a MiB; no answer has a secret that its length could show.
        Mount(
            "/api/v1",
            routes=api.routes(),
            middleware=[Middleware(GZipMiddleware, minimum_size=_LARGE, compresslevel=9)],
        ),
        # Compressed, as nothing in it is secret; views are not: they have secrets next to what others name.
        Mount("/static", GZipMiddleware(StaticFiles(directory=str(files("ovirt_placement_web") / "static")))),
    ]


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    sites: tuple[Site, ...] = app.state.sites
    for site in sites:
        site.keeper.start()
    watching = [asyncio.ensure_future(_watch_sessions(site)) for site in sites]
    try:
        yield
    finally:
        for one in watching:
            one.cancel()
        for site in sites:
            site.keeper.stop()


async def _watch_sessions(site: Site) -> None:
    """Ends what is idle, and reads again what people may do: each by itself, as the engine may hang."""
    seconds = site.settings.validate_seconds
    pause = min(_LOOK_SECONDS, seconds / 2)
    asked: set[asyncio.Task[None]] = set()
    while True:
        await asyncio.sleep(pause)
        for session in site.sessions.due(seconds - pause):
            task = asyncio.ensure_future(site.read_rights_again(session))
            asked.add(task)
            task.add_done_callback(asked.discard)


def _unanswered(request: Request, error: Exception) -> Response:
    """What the library cannot answer now."""
    return refused(request, Refusal(503, f"{str(error)[:1].upper()}{str(error)[1:]}."))


def _unknown(request: Request, error: HTTPException) -> Response:
    texts = {404: "There is no such page.", 405: "This address does not take that."}
    refusal = Refusal(error.status_code, texts.get(error.status_code, "This cannot be answered."))
    if request.url.path.startswith(f"{site_of(request).root}/api/"):
        return api.problem(refusal)
    return refused(request, refusal)


def _too_large(request: Request, error: Exception) -> Response:
    return PlainTextResponse("The request is too large.\n", 413)
