"""Reads HTTP requests from a connection, within limits of size and time."""

from __future__ import annotations

import socket
import time
import zlib
from dataclasses import dataclass

_LONGEST_HEAD = 32 << 10
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_END_OF_HEAD = b"\r\n\r\n"


class HttpError(Exception):
    """The request is refused with this status and sentence; the connection ends."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


@dataclass(frozen=True)
class Limits:
    """What a client may take of us."""

    body: int
    idle_seconds: float
    request_seconds: float


@dataclass(frozen=True)
class Head:
    """The first lines of a request. Names of headers are in lower case."""

    method: str
    path: str
    version: str
    headers: dict[str, str]

    @property
    def keeps_alive(self) -> bool:
        wish = self.headers.get("connection", "").lower()
        return wish != "close" if self.version == "HTTP/1.1" else wish == "keep-alive"


class RequestReader:
    """Reads one request after the other. A pipelined next request waits in the buffer."""

    def __init__(self, connection: socket.socket, limits: Limits) -> None:
        self._connection = connection
        self._limits = limits
        self._buffer = bytearray()
        self._expires = 0.0

    def read_head(self) -> Head | None:
        """Wait for the next request; None when the client is gone or was silent for too long.

        Raises `HttpError` for what is no request, and `TimeoutError` for one that comes too slowly.
        """
        if not self._buffer:
            self._connection.settimeout(self._limits.idle_seconds)
            try:
                received = self._connection.recv(65536)
            except TimeoutError:
                return None
            if not received:
                return None
            self._buffer += received
        self._expires = time.monotonic() + self._limits.request_seconds
        while (end := self._buffer.find(_END_OF_HEAD)) < 0:
            if len(self._buffer) > _LONGEST_HEAD:
                raise HttpError(431, "the headers are too long")
            if not self._receive():
                return None
        head = bytes(self._buffer[:end])
        del self._buffer[: end + len(_END_OF_HEAD)]
        return _parse_head(head)

    def read_body(self, head: Head) -> bytes:
        """The whole body, unpacked. Raises as `read_head` does, and when the limit is passed."""
        if head.headers.get("expect", "").lower() == "100-continue":
            self._connection.sendall(_CONTINUE)
        coding = head.headers.get("transfer-encoding", "").lower()
        if coding == "chunked":
            body = self._read_chunks()
        elif coding:
            raise HttpError(501, f"transfer encoding {coding[:40]!r} is not known")
        else:
            body = self._take(self._length(head))
        packing = head.headers.get("content-encoding", "identity").lower()
        if packing in {"gzip", "x-gzip"}:
            return self._unpack(body)
        if packing != "identity":
            raise HttpError(415, f"content encoding {packing[:40]!r} is not known")
        return body

    def _length(self, head: Head) -> int:
        text = head.headers.get("content-length")
        if text is None:
            raise HttpError(411, "the request has neither a Content-Length nor chunks")
        if not text.isascii() or not text.isdigit() or len(text) > 12:
            raise HttpError(400, "the Content-Length is no number")
        self._check_size(int(text))
        return int(text)

    def _check_size(self, size: int) -> None:
        if size > self._limits.body:
            raise HttpError(413, f"the body is longer than {self._limits.body >> 20} MiB")

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := self._chunk_size():
            self._check_size(len(body) + size)
            body += self._take(size)
            if self._take(2) != b"\r\n":
                raise HttpError(400, "a chunk does not end where it says")
        while self._line():
            pass  # trailers say nothing to us
        return bytes(body)

    def _chunk_size(self) -> int:
        text = self._line().split(b";")[0].strip()
        try:
            return (
                int(text, 16) if len(text) <= 8 and not text.startswith((b"+", b"-")) else self._bad_chunk()
            )
        except ValueError:
            return self._bad_chunk()

    def _bad_chunk(self) -> int:
        raise HttpError(400, "the size of a chunk is no number")

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _LONGEST_HEAD or not self._receive():
                raise HttpError(400, "a line of the body does not end")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if not self._receive():
                raise HttpError(400, "the body ended early")
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _receive(self) -> bool:
        remaining = self._expires - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._connection.settimeout(remaining)
        received = self._connection.recv(262144)
        self._buffer += received
        return bool(received)

    def _unpack(self, packed: bytes) -> bytes:
        unpacking = zlib.decompressobj(wbits=31)
        try:
            body = unpacking.decompress(packed, self._limits.body + 1)
        except zlib.error as error:
            raise HttpError(400, f"the body is not gzip: {error}") from error
        self._check_size(len(body))
        if not unpacking.eof:
            raise HttpError(400, "the gzip body ended early")
        return body


def _parse_head(head: bytes) -> Head:
    first, *lines = head.decode("latin-1").split("\r\n")
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
    if "transfer-encoding" in headers and "content-length" in headers:
        raise HttpError(400, "a body cannot have both a Content-Length and chunks")
    return Head(parts[0], parts[1], parts[2], headers)
