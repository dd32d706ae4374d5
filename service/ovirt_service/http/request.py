"""Reads HTTP requests from the bytes as they come, within limits of size; writes responses in one piece."""

from __future__ import annotations

import re
from http import HTTPStatus

import msgspec

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
        wish = self.headers.get("connection", "").lower()
        return wish != "close" if self.version == "HTTP/1.1" else wish == "keep-alive"


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
        self._buffer = bytearray()
        #: The head of the request whose body is still coming.
        self.head: Head | None = None
        self._length = 0

    @property
    def pending(self) -> bool:
        """Whether a request has begun to come."""
        return bool(self._buffer) or self.head is not None

    @property
    def held(self) -> int:
        """Bytes that wait to be read."""
        return len(self._buffer)

    def feed(self, received: bytes) -> None:
        self._buffer += received

    def next(self) -> HttpRequest | None:
        """The next whole request; None while it has not come in full."""
        if self.head is None:
            self.head = self._read_head()
        if self.head is None or len(self._buffer) < self._length:
            return None
        request = HttpRequest(self.head, bytes(self._buffer[: self._length]))
        del self._buffer[: self._length]
        self.head = None
        return request

    def _read_head(self) -> Head | None:
        end = self._buffer.find(_END_OF_HEAD)
        if end < 0 or end > _LONGEST_HEAD:
            if len(self._buffer) > _LONGEST_HEAD:
                raise HttpError(431, "the headers are too long")
            return None
        head = parse_head(bytes(self._buffer[:end]))
        del self._buffer[: end + len(_END_OF_HEAD)]
        if "transfer-encoding" in head.headers:
            raise HttpError(411, "a body must come with its Content-Length, and in one piece")
        if head.headers.get("content-encoding", "identity").lower() != "identity":
            raise HttpError(415, "a body must come as it is, not packed")
        self._length = self._content_length(head)
        return head

    def _content_length(self, head: Head) -> int:
        text = head.headers.get("content-length", "0" if head.method in {"GET", "HEAD"} else "")
        if not text:
            raise HttpError(411, "the request has no Content-Length")
        if not text.isascii() or not text.isdigit() or len(text) > 12:
            raise HttpError(400, "the Content-Length is no number")
        if int(text) > self._longest_body:
            raise HttpError(413, f"the body is longer than {self._longest_body >> 20} MiB")
        return int(text)


def parse_head(head: bytes) -> Head:
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


def render(response: Response, head: Head | None, keep_alive: bool) -> bytes:
    """The bytes of a response; without a body for `HEAD`."""
    status = f"{response.status} {HTTPStatus(response.status).phrase}"
    lines = (
        f"HTTP/1.1 {status}\r\nContent-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.body)}\r\n"
        f"Connection: {'keep-alive' if keep_alive else 'close'}\r\n\r\n"
    )
    without = head is not None and head.method == "HEAD"
    return lines.encode("latin-1") + (b"" if without else response.body)
