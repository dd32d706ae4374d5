"""The event stream, one a browser: it reports that there is a newer state, and how old the last one is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.site import NO_ADMIN, check_query, error_text, site_of
from ovirt_placement_web.state.keeper import View

#: Proxies and browsers close what is silent for half a minute.
BEAT_SECONDS = 10.0
#: Who takes nothing in for so long is not there.
_PATIENCE_SECONDS = 20.0
#: No more often, whatever the engine does; what comes after a pause is sent at once.
_LEAST_SECONDS = 0.1


async def stream(request: Request) -> Response:
    return EventStream(request)


class EventStream(StreamingResponse):
    """The answer to a request for it; raises `Refusal` for who may not read."""

    def __init__(self, request: Request) -> None:
        check_query(request, [])
        if request.method != "GET":
            raise Refusal(400, "This address takes a GET.")
        self._request = request
        self._site = site_of(request)
        session = self._site.session(request, use=False)
        if session is None:
            raise Refusal(401, "Log in first.")
        self._session = session
        super().__init__(self._events(), headers={"X-Accel-Buffering": "no"}, media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it in one of the places that streams have, until its reader goes or takes nothing in."""

        async def patiently(message: Message) -> None:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await send(message)

        async with self._site.bounds.streams.place(self._session):
            with suppress(TimeoutError):
                await super().__call__(scope, receive, patiently)

    async def _events(self) -> AsyncIterator[bytes]:
        site, session = self._site, self._session
        with site.keeper.subscribed() as changed, session.wakes(changed):
            while True:
                changed.clear()
                lasts = site.sessions.find(site.cookie_of(self._request), use=False) is session
                if not lasts or not session.rights.administrator:
                    yield _event("end", {"why": NO_ADMIN} if lasts else {})
                    return
                sent_at = time.monotonic()
                yield _event("state", _state(site.keeper.view))
                with suppress(TimeoutError):
                    async with asyncio.timeout(BEAT_SECONDS):
                        await changed.wait()
                await asyncio.sleep(sent_at + _LEAST_SECONDS - time.monotonic())


def _event(name: str, said: dict[str, object]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(said))


def _state(view: View) -> dict[str, object]:
    return {
        "number": view.number,
        "age_seconds": round(view.age_seconds, 1),
        "error": view.error and error_text(view.error),
    }
