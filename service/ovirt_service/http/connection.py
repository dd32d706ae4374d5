"""HTTP/1.1 with one client: requests are read as bytes come, within limits, and answered one by one."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

import msgspec

if TYPE_CHECKING:
    from ovirt_service.http.listener import Room

log = logging.getLogger(__name__)

_LONGEST_HEAD = 32 << 10
_END_OF_HEAD = b"\r\n\r\n"

#: An address as clients send it to a proxy of HTTP, and some to every server.
_ABSOLUTE = re.compile(r"https?://([^/?#]+)(/.*)?", re.IGNORECASE)
#: Control characters but the tab: RFC 9110, 5.5.
_NO_TEXT = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class HttpError(Exception):
    """The request is refused with this status and sentence; the connection ends."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Head(msgspec.Struct, frozen=True):
    """The first lines of a request. Names of headers are in lower case."""

    method: str
    path: str
    version: str
    headers: dict[str, str]

    @property
    def keeps_alive(self) -> bool:
        wishes = {one.strip() for one in self.headers.get("connection", "").lower().split(",")}
        return "close" not in wishes and (self.version == "HTTP/1.1" or "keep-alive" in wishes)


class HttpRequest(msgspec.Struct, frozen=True):
    head: Head
    body: bytes


class RequestParser:
    """Takes bytes in and gives requests out, one after the other.

    A body comes with its length, and not packed, as the engine sends it. Methods raise `HttpError` for what
    is no request or is too long; the parser is of no use after that.
    """

    def __init__(self, longest_body: int) -> None:
        self._longest_body = longest_body
        #: Bytes that wait to be read.
        self.buffer = bytearray()
        #: The head of the request whose body is still coming.
        self.head: Head | None = None
        self._length = 0

    @property
    def pending(self) -> bool:
        """Whether a request has begun to come."""
        return bool(self.buffer) or self.head is not None

    def next(self) -> HttpRequest | None:
        """The next whole request; None while it has not come in full."""
        if self.head is None:
            self.head = self._read_head()
        if self.head is None or len(self.buffer) < self._length:
            return None
        request = HttpRequest(self.head, bytes(self.buffer[: self._length]))
        del self.buffer[: self._length]
        self.head = None
        return request

    def _read_head(self) -> Head | None:
        end = self.buffer.find(_END_OF_HEAD)
        if end < 0 or end > _LONGEST_HEAD:
            if len(self.buffer) > _LONGEST_HEAD:
                raise HttpError(431, "the headers are too long")
            return None
        head = _parse_head(bytes(self.buffer[:end]))
        del self.buffer[: end + len(_END_OF_HEAD)]
        if "transfer-encoding" in head.headers:
            raise HttpError(411, "a body must come with its Content-Length, and in one piece")
        if head.headers.get("content-encoding", "identity").lower() != "identity":
            raise HttpError(415, "a body must come as it is, not packed")
        text = head.headers.get("content-length", "0" if head.method in {"GET", "HEAD"} else "")
        if not text:
            raise HttpError(411, "the request has no Content-Length")
        if not text.isascii() or not text.isdigit() or len(text) > 12:
            raise HttpError(400, "the Content-Length is no number")
        if int(text) > self._longest_body:
            raise HttpError(413, f"the body is longer than {self._longest_body >> 20} MiB")
        self._length = int(text)
        return head


def _parse_head(head: bytes) -> Head:
    """Read the first line and the headers. Raises `HttpError`."""
    text = head.decode("latin-1")
    if _NO_TEXT.search(text.replace("\r\n", "")):
        raise HttpError(400, "the head holds a character that no head may hold")
    first, *lines = text.split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or parts[2] not in {"HTTP/1.1", "HTTP/1.0"}:
        raise HttpError(400, "the first line is no HTTP/1.1 request")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip():
            raise HttpError(400, "a header is malformed")
        if name in headers and name in {"content-length", "host", "transfer-encoding"}:
            raise HttpError(400, f"the header {name} stands there twice")
        headers[name] = value.strip()
    path = parts[1]
    if absolute := _ABSOLUTE.fullmatch(path):
        # RFC 9112, 3.2.2: the address counts, and not what the header says.
        headers["host"], path = absolute[1], absolute[2] or "/"
    return Head(parts[0], path, parts[2], headers)


XML = "text/xml; charset=utf-8"
TEXT = "text/plain; charset=utf-8"


class Response(msgspec.Struct, frozen=True):
    """What a client gets."""

    body: bytes
    content_type: str = XML
    status: int = 200


def _rendered(response: Response, head: Head | None, keep_alive: bool) -> bytes:
    """The bytes of a response; without a body for `HEAD`."""
    lines = (
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\n"
        f"Content-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.body)}\r\n"
        f"Connection: {'keep-alive' if keep_alive else 'close'}\r\n\r\n"
    )
    without = head is not None and head.method == "HEAD"
    return lines.encode("latin-1") + (b"" if without else response.body)


#: So much may be sent ahead while an answer is on its way.
_MOST_AHEAD = 64 << 10

#: Takes the response to a request, now or later.
Respond = Callable[[Response], None]
#: Judges a head before its body is read. Raises `HttpError`.
Check = Callable[[Head], None]
#: Answers a request. May raise `HttpError`.
Answer = Callable[[HttpRequest, Respond], None]


class Connection(asyncio.Protocol):
    """Created for each client by the listener; takes room, as a `Guest`: of a client that may call or not."""

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
        self.has_called = False
        self.waiting_since: float | None = time.monotonic()

    @property
    def idle(self) -> bool:
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
        self._parser.buffer += data
        if self._answering is None and not self._paused:
            self._proceed()
        elif len(self._parser.buffer) > self._longest_body + _MOST_AHEAD:
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
        self._last = True
        if self.idle:
            self.close()

    def close(self) -> None:
        """Let what is written go out, then end."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _proceed(self) -> None:
        if self._answering is not None or self._paused:
            return
        request = None
        try:
            request = self._parser.next()
            head = request.head if request is not None else self._parser.head
            if head is not None and head is not self._checked:
                self._checked = head
                self._check(head)  # early, before the body has come
            if request is not None:
                self._answering = request.head
                self.waiting_since = None
                self._answer(request, self._respond)
        except HttpError as error:
            self._refuse(error)
        except Exception:
            log.exception("a request ended by an error of the server's own")
            self._refuse(HttpError(500, "the server erred; its log says more"))
        if self._all_sent and self._answering is None:
            self.close()

    def _respond(self, response: Response) -> None:
        head = self._answering
        if head is None:
            return
        self._answering = self._checked = None
        self.has_called = True
        self.waiting_since = time.monotonic()
        stays = head.keeps_alive and not self._last
        self._write(_rendered(response, head, stays))
        if not stays:
            self.close()
        elif self._parser.pending or self._all_sent:
            asyncio.get_running_loop().call_soon(self._proceed)

    def _refuse(self, error: HttpError) -> None:
        self._answering = None
        response = Response(f"{error.sentence}\n".encode(), TEXT, error.status)
        self._write(_rendered(response, self._checked, False))
        self.close()

    def _write(self, written: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(written)
