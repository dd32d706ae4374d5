"""One client's connection: HTTP/1.1 with keep-alive, one request at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import cast

from ovirt_service.http.request import TEXT, Head, HttpError, HttpRequest, RequestParser, Response, render
from ovirt_service.http.room import Room

log = logging.getLogger(__name__)

#: So much may be sent ahead while an answer is on its way.
_MOST_AHEAD = 64 << 10

#: Takes the response to a request, now or later.
Respond = Callable[[Response], None]
#: Judges a head before its body is read. Raises `HttpError`.
Check = Callable[[Head], None]
#: Answers a request. May raise `HttpError`.
Answer = Callable[[HttpRequest, Respond], None]


class Connection(asyncio.Protocol):
    """Created for each client by the listener; takes room, of a client that may call or may not."""

    def __init__(self, room: Room, may_call: bool, check: Check, answer: Answer, longest_body: int) -> None:
        self._room = room
        self._may_call = may_call
        self._check = check
        self._answer = answer
        self._parser = RequestParser(longest_body)
        self._longest_body = longest_body
        self._transport: asyncio.Transport | None = None
        #: The request that is being answered.
        self._answering: Head | None = None
        self._checked: Head | None = None
        self._all_sent = False
        #: Whether the client reads too slowly for further answers.
        self._paused = False
        self._last = False
        #: Whether a request of this client was answered.
        self.has_called = False
        #: Since when the client has been expected to do something; None while it waits for us.
        self.waiting_since: float | None = time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether no part of a request has come and no part of an answer is left to go."""
        return self._answering is None and not self._parser.pending and not self.unsent

    @property
    def unsent(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._room.add(self, self._may_call)

    def data_received(self, data: bytes) -> None:
        if self.idle:
            self.waiting_since = time.monotonic()
        self._parser.feed(data)
        if self._answering is None and not self._paused:
            self._proceed()
        elif self._parser.held > self._longest_body + _MOST_AHEAD:
            self.abort()

    def eof_received(self) -> bool:
        """A client that has sent all its requests may still read the answers to them."""
        self._all_sent = True
        encrypted = self._transport is not None and self._transport.get_extra_info("sslcontext") is not None
        if encrypted or not (self._answering is not None or self._parser.pending):
            return False
        asyncio.get_running_loop().call_soon(self._proceed)
        return True

    def pause_writing(self) -> None:
        """The client does not read its answers: it gets no others, which would take ever more memory."""
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._answering is None and (self._parser.pending or self._all_sent):
            asyncio.get_running_loop().call_soon(self._proceed)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._room.remove(self)

    def end(self) -> None:
        """Answer no more than the request that has begun, if one has."""
        self._last = True
        if self.idle:
            self.close()

    def close(self) -> None:
        """Let what is written go out, then end."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End at once."""
        if self._transport is not None:
            self._transport.abort()

    def _proceed(self) -> None:
        """Answer the next request if it is there."""
        if self._answering is not None or self._paused:
            return
        request = None
        try:
            request = self._parser.next()
            self._check_head(request.head if request is not None else self._parser.head)
            if request is not None:
                self._answering = request.head
                self.waiting_since = None
                self._answer(request, self._respond)
        except HttpError as error:
            self._refuse(error)
        except Exception:
            log.exception("a request ended by an error of the proxy's own")
            self._refuse(HttpError(500, "the proxy erred; its log says more"))
        if self._all_sent and self._answering is None:
            self.close()

    def _check_head(self, head: Head | None) -> None:
        """Refuse early, before the body has come."""
        if head is not None and head is not self._checked:
            self._checked = head
            self._check(head)

    def _respond(self, response: Response) -> None:
        head = self._answering
        if head is None:
            return
        self._answering = self._checked = None
        self.has_called = True
        self.waiting_since = time.monotonic()
        stays = head.keeps_alive and not self._last
        self._write(render(response, head, stays))
        if not stays:
            self.close()
        elif self._parser.pending or self._all_sent:
            asyncio.get_running_loop().call_soon(self._proceed)

    def _refuse(self, error: HttpError) -> None:
        self._answering = None
        self._write(
            render(Response(f"{error.sentence}\n".encode(), TEXT, error.status), self._checked, False)
        )
        self.close()

    def _write(self, written: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(written)
