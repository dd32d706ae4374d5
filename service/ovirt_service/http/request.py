"""Reads HTTP requests from the bytes as they come, within limits of size."""

from __future__ import annotations

import re
import zlib

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

    Methods raise `HttpError` for what is no request or is too long; the parser is of no use after that.
    """

    def __init__(self, longest_body: int) -> None:
        self._longest_body = longest_body
        self._buffer = bytearray()
        #: The head of the request whose body is still coming.
        self.head: Head | None = None
        self._body = bytearray()
        self._chunked = False
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
        if self.head is None and not self._read_head():
            return None
        head = self.head
        if head is None or not self._read_body():
            return None
        body = self._unpacked(head, bytes(self._body))
        self.head = None
        self._body = bytearray()
        return HttpRequest(head, body)

    def _read_head(self) -> bool:
        end = self._buffer.find(_END_OF_HEAD)
        if end < 0 or end > _LONGEST_HEAD:
            if len(self._buffer) > _LONGEST_HEAD:
                raise HttpError(431, "the headers are too long")
            return False
        head = parse_head(bytes(self._buffer[:end]))
        del self._buffer[: end + len(_END_OF_HEAD)]
        coding = head.headers.get("transfer-encoding", "").lower()
        if coding not in {"", "chunked"}:
            raise HttpError(501, f"transfer encoding {coding[:40]!r} is not known")
        self._chunked = bool(coding)
        self._length = 0 if self._chunked else self._content_length(head)
        self.head = head
        return True

    def _read_body(self) -> bool:
        """Move what has come of the body; whether it is complete."""
        if self._chunked:
            return self._read_chunks()
        if len(self._buffer) < self._length:
            return False
        self._body = self._buffer[: self._length]
        del self._buffer[: self._length]
        return True

    def _read_chunks(self) -> bool:
        while (end := self._buffer.find(b"\r\n")) >= 0:
            size = _chunk_size(bytes(self._buffer[:end]))
            if size == 0:
                return self._read_trailers(end)
            self._check_length(len(self._body) + size)
            if len(self._buffer) < end + 2 + size + 2:
                return False
            start = end + 2
            if self._buffer[start + size : start + size + 2] != b"\r\n":
                raise HttpError(400, "a chunk does not end where it says")
            self._body += self._buffer[start : start + size]
            del self._buffer[: start + size + 2]
        if len(self._buffer) > _LONGEST_HEAD:
            raise HttpError(400, "a line of the body does not end")
        return False

    def _read_trailers(self, end: int) -> bool:
        """Drop what follows the last chunk up to an empty line: it says nothing to us."""
        if self._buffer[end : end + 4] == _END_OF_HEAD:
            del self._buffer[: end + 4]
            return True
        last = self._buffer.find(_END_OF_HEAD, end)
        if last < 0:
            if len(self._buffer) > _LONGEST_HEAD:
                raise HttpError(431, "the trailers are too long")
            return False
        del self._buffer[: last + 4]
        return True

    def _content_length(self, head: Head) -> int:
        text = head.headers.get("content-length", "0" if head.method in {"GET", "HEAD"} else "")
        if not text:
            raise HttpError(411, "the request has neither a Content-Length nor chunks")
        if not text.isascii() or not text.isdigit() or len(text) > 12:
            raise HttpError(400, "the Content-Length is no number")
        self._check_length(int(text))
        return int(text)

    def _check_length(self, length: int) -> None:
        if length > self._longest_body:
            raise HttpError(413, f"the body is longer than {self._longest_body >> 20} MiB")

    def _unpacked(self, head: Head, body: bytes) -> bytes:
        packing = head.headers.get("content-encoding", "identity").lower()
        if packing == "identity":
            return body
        if packing not in {"gzip", "x-gzip"}:
            raise HttpError(415, f"content encoding {packing[:40]!r} is not known")
        unpacking = zlib.decompressobj(wbits=31)
        try:
            unpacked = unpacking.decompress(body, self._longest_body + 1)
        except zlib.error as error:
            raise HttpError(400, f"the body is not gzip: {error}") from error
        self._check_length(len(unpacked))
        if not unpacking.eof:
            raise HttpError(400, "the gzip body ended early")
        return unpacked


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
    if "transfer-encoding" in headers and "content-length" in headers:
        raise HttpError(400, "a body cannot have both a Content-Length and chunks")
    return Head(parts[0], path, parts[2], headers)


def _chunk_size(line: bytes) -> int:
    text = line.split(b";")[0].strip()
    if not text or len(text) > 8 or text.strip(b"0123456789abcdefABCDEF"):
        raise HttpError(400, "the size of a chunk is no number")
    return int(text, 16)
