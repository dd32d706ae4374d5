"""Writes HTTP responses, each in one piece."""

from __future__ import annotations

import gzip
from http import HTTPStatus

import msgspec

from ovirt_service.http.request import Head

#: Shorter bodies are not worth packing.
_PACK_FROM = 4096

XML = "text/xml; charset=utf-8"
TEXT = "text/plain; charset=utf-8"


class Response(msgspec.Struct, frozen=True):
    """What a client gets."""

    body: bytes
    content_type: str = XML
    status: int = 200


def render(response: Response, head: Head | None, keep_alive: bool) -> bytes:
    """The bytes of a response; packed with gzip where the client asks for that, and no body for `HEAD`."""
    body = response.body
    packed = ""
    if len(body) >= _PACK_FROM and head is not None and _accepts_gzip(head):
        body = gzip.compress(body, compresslevel=1)
        packed = "Content-Encoding: gzip\r\n"
    status = f"{response.status} {HTTPStatus(response.status).phrase}"
    lines = (
        f"HTTP/1.1 {status}\r\nContent-Type: {response.content_type}\r\n"
        f"Content-Length: {len(body)}\r\n{packed}"
        f"Connection: {'keep-alive' if keep_alive else 'close'}\r\n\r\n"
    )
    without = head is not None and head.method == "HEAD"
    return lines.encode("latin-1") + (b"" if without else body)


def _accepts_gzip(head: Head) -> bool:
    for part in head.headers.get("accept-encoding", "").lower().split(","):
        coding, _, quality = part.partition(";")
        if coding.strip() in {"gzip", "x-gzip"}:
            return quality.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False
