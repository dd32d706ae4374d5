"""Puts the page together: addresses, what stands before them, and what runs next to them."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules
from typing import Any
from urllib.parse import urlsplit

from anyio import create_task_group, sleep
from anyio.abc import TaskGroup
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ovirt_placement.config import Config
from ovirt_placement_web import api, log_in, views
from ovirt_placement_web.bounds import Refusal, WebMetrics, sentence
from ovirt_placement_web.settings import Listening, WebSettings, engine_origin, engines, origins
from ovirt_placement_web.site import Site, refused, site_of
from ovirt_placement_web.views import endpoints, overview, plans
from ovirt_service.errors import UserError

#: How often it is looked which sessions are over, or whose rights are to be read again.
_POLL_SECONDS = 5.0


def application(config: Config, settings: WebSettings, at: Listening, metrics: WebMetrics) -> ASGIApp:
    """The page as an ASGI application, of all engines; raises `UserError` if a configuration is at fault."""
    sites = tuple(Site(one, root, settings, metrics) for root, one in engines(config, settings).items())
    for site in sites:
        site.places = sites
    # Each is given errors of its kind alone, which Starlette's type does not say.
    handlers: dict[Any, Callable[..., Response]] = {
        Refusal: refused,
        UserError: lambda request, error: refused(request, Refusal(503, sentence(error))),
        HTTPException: _unknown,
    }
    app = Starlette(
        # The first engine's path is that of all; without its last slash it leads on to the first view.
        routes=[
            *(Route(root, _start) for root in ("/", *(site.root for site in sites))),
            *(Mount(site.root, routes=routes()) for site in reversed(sites)),
        ],
        middleware=[
            Middleware(Guard, sites=sites, origins=origins(settings, at, config.source), is_tls=at.tls)
        ],
        exception_handlers=handlers,
        lifespan=_lifespan,
    )
    app.state.sites = sites
    return app


def _start(request: Request) -> Response:
    return RedirectResponse(f"{site_of(request).root}/", 307)


def routes() -> list[BaseRoute]:
    """All that the page answers to, below its root: what each file of views declares, and the rest."""
    for view in iter_modules(views.__path__):
        import_module(f"{views.__name__}.{view.name}")
    return [
        *endpoints.ROUTES,
        Route("/summary", overview.summary),
        Route("/health", plans.examine, methods=["POST"]),
        Route("/log-in", log_in.show),
        Route("/log-in", log_in.log_in, methods=["POST"]),
        Route("/log-in/token", log_in.log_in_by_token, methods=["POST"]),
        Route("/portal", log_in.show_portal),
        Route("/log-out", log_in.log_out, methods=["POST"]),
        Route("/events", api.events),
        Mount("/api/v1", routes=api.routes()),
        # Compressed, as nothing in it is secret; views are not: they have secrets next to what others name.
        Mount("/static", GZipMiddleware(StaticFiles(directory=str(files("ovirt_placement_web") / "static")))),
    ]


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    sites: tuple[Site, ...] = app.state.sites
    async with create_task_group() as tasks:
        for site in sites:
            site.live.start()
            tasks.start_soon(_watch_sessions, site, tasks)
        yield
        tasks.cancel_scope.cancel()
        for site in sites:
            site.live.stop()


async def _watch_sessions(site: Site, tasks: TaskGroup) -> None:
    """Ends what is idle, and reads again what people may do: each by itself, as the engine may hang."""
    seconds = site.settings.validate_seconds
    pause = min(_POLL_SECONDS, seconds / 2)
    while True:
        await sleep(pause)
        for session in site.sessions.due(seconds - pause):
            tasks.start_soon(site.read_rights_again, session)


def _unknown(request: Request, error: HTTPException) -> Response:
    texts = {404: "There is no such page.", 405: "This address does not take that."}
    text = texts.get(error.status_code, "This cannot be answered.")
    refusal = Refusal(error.status_code, text, dict(error.headers or {}))
    if request.url.path.startswith(f"{site_of(request).root}/api/"):
        return api.problem(refusal)
    return refused(request, refusal)


# -- What every request passes before a view sees it, and what every answer carries.
#: Bytes that a request may carry: a form has a few hundred.
MOST_BYTES = 2**20
#: And one of who need not be logged in.
_STRANGERS_BYTES = 2**14
_FOR_STRANGERS = ("/log-in", "/log-in/token", "/log-out")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors {ancestors}"
)
_TOO_LARGE = "The request is too large."
_FAILED = "This cannot be answered; the log of ovirt-placement-web says why.\n"

_log = logging.getLogger(__name__)


class Guard:
    """Refuses requests that are not for us, or from elsewhere, and adds the headers of every answer."""

    def __init__(self, app: ASGIApp, *, sites: Sequence[Site], origins: Iterable[str], is_tls: bool) -> None:
        """`sites` are those of all engines, the first one's path above those of the others."""
        self._app = app
        self._sites = sites
        self._origins = frozenset(origins)
        self._hosts = frozenset(urlsplit(origin).netloc for origin in self._origins)
        self._is_tls = is_tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, begun, size = scope["path"], False, 0
        most = _STRANGERS_BYTES if path.rstrip("/").endswith(_FOR_STRANGERS) else MOST_BYTES
        # That of the engine below whose path it is; else the first one's.
        below = (one for one in self._sites[1:] if f"{path}/".startswith(f"{one.root}/"))
        scope["site"] = site = next(below, self._sites[0])

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise Refusal(413, _TOO_LARGE)
            return message

        async def answering(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                MutableHeaders(scope=message).update(self._headers(path, site))
            await send(message)

        try:
            await (self._refusal(scope, most) or self._app)(scope, bounded, answering)
        except ClientDisconnect:
            return  # who went away, or took too long, gets no answer
        except Exception:
            # It is in the log, and no reader sees its traceback.
            _log.exception("%s %s failed", scope["method"], path)
            if begun:
                raise
            await PlainTextResponse(_FAILED, 500)(scope, receive, answering)

    def _headers(self, path: str, site: Site) -> dict[str, str]:
        framed_by = engine_origin(site.config.engine.url)
        framed_by = "'none'" if path.rstrip("/").endswith("/log-in") else framed_by
        headers = {
            "Content-Security-Policy": _CSP.format(ancestors=framed_by),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-cache" if "/static/" in path else "no-store",
        }
        return headers | ({"Strict-Transport-Security": "max-age=31536000"} if self._is_tls else {})

    def _refusal(self, scope: Scope, most: int) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self._hosts:
            return PlainTextResponse("This is not the address of the page.\n", 421)
        if int(headers.get("content-length", "0")) > most:
            return PlainTextResponse(f"{_TOO_LARGE}\n", 413)
        if scope["method"] in _SAFE:
            return None
        site, origin = headers.get("sec-fetch-site"), headers.get("origin", "").lower()
        if site not in (None, "same-origin"):
            return PlainTextResponse("This request comes from another site.\n", 403)
        # Without referrers, browsers say of a form's origin only that it is none; the site they do say.
        if origin not in self._origins and not (origin == "null" and site == "same-origin"):
            return PlainTextResponse("This request does not say that it comes from the page.\n", 403)
        return None
