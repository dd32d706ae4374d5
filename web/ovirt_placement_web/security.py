"""What every request passes before a view sees it, and what every answer carries."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
_FAILED = "This cannot be answered; the log of ovirt-placement-web says why.\n"

_log = logging.getLogger(__name__)


class Guard:
    """Refuses requests that are not for us, or from elsewhere, and adds the headers of every answer."""

    def __init__(
        self, app: ASGIApp, *, origins: Iterable[str], root: str, framed_by: str, is_tls: bool
    ) -> None:
        self._app = app
        self._origins = frozenset(origins)
        self._hosts = frozenset(urlsplit(origin).netloc for origin in self._origins)
        self._root = root
        self._framed_by = framed_by
        self._is_tls = is_tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answering = _Answering(send, scope["path"], self._policy(scope), hsts=self._is_tls)
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, answering)
            return
        try:
            await self._app(scope, _Bounded(receive, _most_bytes(scope)), answering)
        except ClientDisconnect:
            return  # who went away, or took too long, gets no answer
        except Exception:
            # It is in the log, and nobody sees its traceback.
            _log.exception("%s %s failed", scope["method"], scope["path"])
            if answering.begun:
                raise
            await PlainTextResponse(_FAILED, 500)(scope, receive, answering)

    def _policy(self, scope: Scope) -> str:
        alone = scope["path"].rstrip("/").endswith("/log-in")
        return _CSP.format(ancestors="'none'" if alone else self._framed_by)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self._hosts:
            return PlainTextResponse("This is not the address of the page.\n", 421)
        if int(_digits(headers.get("content-length"))) > _most_bytes(scope):
            return PlainTextResponse("The request is too large.\n", 413)
        if scope["method"] in _SAFE:
            return None
        site, origin = headers.get("sec-fetch-site"), headers.get("origin", "").lower()
        if site not in (None, "same-origin"):
            return PlainTextResponse("This request comes from another site.\n", 403)
        # Without referrers, browsers say of a form's origin only that it is none; the site they do say.
        if origin not in self._origins and not (origin == "null" and site == "same-origin"):
            return PlainTextResponse("This request does not say that it comes from the page.\n", 403)
        return None


class TooLarge(Exception):
    """A request without a length has turned out to be too large."""


class _Bounded:
    """Receives no more than a request may carry."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._size = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > self._most:
            raise TooLarge
        return message


class _Answering:
    """Sends with the headers that every answer has."""

    def __init__(self, send: Send, path: str, policy: str, *, hsts: bool) -> None:
        self._send = send
        self._static = "/static/" in path
        self._policy = policy
        self._hsts = hsts
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            headers["Content-Security-Policy"] = self._policy
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "no-referrer"
            headers["Cross-Origin-Resource-Policy"] = "same-origin"
            headers["Cache-Control"] = "no-cache" if self._static else "no-store"
            if self._hsts:
                headers["Strict-Transport-Security"] = "max-age=31536000"
        await self._send(message)


def _most_bytes(scope: Scope) -> int:
    return _STRANGERS_BYTES if scope["path"].rstrip("/").endswith(_FOR_STRANGERS) else MOST_BYTES


def _digits(text: str | None) -> str:
    return text if text is not None and text.isascii() and text.isdigit() and len(text) < 20 else "0"
