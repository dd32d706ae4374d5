"""The event stream, one a browser: it reports that there is a newer state, and how old the last one is."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.sessions import Session
from ovirt_placement_web.site import NO_ADMIN, Site, error_text
from ovirt_placement_web.state.keeper import View

#: Proxies and browsers close what is silent for half a minute.
BEAT_SECONDS = 10.0
#: Who takes nothing in for so long is not there.
_PATIENCE_SECONDS = 20.0
#: No more often, whatever the engine does; what comes after a pause is sent at once.
_LEAST_SECONDS = 0.1


class EventStream:
    """An application of its own: it has to know whether its reader takes anything in."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            session = self._reader(request)
            async with self._site.bounds.streams.place(session):
                gone = asyncio.ensure_future(_gone(receive))
                try:
                    await self._report(session, request, send, gone)
                except (TimeoutError, OSError):
                    return  # the reader takes nothing in, or has gone
                finally:
                    gone.cancel()
        except Refusal as refusal:
            answer = PlainTextResponse(f"{refusal.text}\n", refusal.status, refusal.headers)
            await answer(scope, receive, send)

    def _reader(self, request: Request) -> Session:
        """Whose stream it is; raises `Refusal` for who may not read."""
        if request.method != "GET" or request.query_params:
            raise Refusal(400, "This address takes a GET without parameters.")
        session = self._site.session(request, use=False)
        if session is None:
            raise Refusal(401, "Log in first.")
        return session

    async def _report(
        self, session: Session, request: Request, send: Send, gone: asyncio.Future[None]
    ) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        site = self._site
        with site.keeper.subscribed() as changed, session.wakes(changed):
            while not gone.done():
                changed.clear()
                lasts = site.sessions.find(site.cookie_of(request), use=False) is session
                if not lasts or not session.rights.administrator:
                    await _send(send, _end_event(NO_ADMIN if lasts else ""), more=False)
                    return
                sent_at = time.monotonic()
                await _send(send, _event(site.keeper.view))
                await _first(changed, gone, BEAT_SECONDS)
                await asyncio.sleep(sent_at + _LEAST_SECONDS - time.monotonic())


async def _first(changed: asyncio.Event, gone: asyncio.Future[None], seconds: float) -> None:
    waiting = asyncio.ensure_future(changed.wait())
    try:
        both: list[asyncio.Future[Any]] = [waiting, gone]
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting


async def _send(send: Send, body: bytes, *, more: bool = True) -> None:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        await send({"type": "http.response.body", "body": body, "more_body": more})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _end_event(why: str) -> bytes:
    return b"event: end\ndata: " + msgspec.json.encode({"why": why} if why else {}) + b"\n\n"


def _event(view: View) -> bytes:
    said = {
        "number": view.number,
        "age_seconds": round(view.age_seconds, 1),
        "error": view.error and error_text(view.error),
    }
    return b"event: state\ndata: " + msgspec.json.encode(said) + b"\n\n"
