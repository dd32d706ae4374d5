"""How the proxy and a worker speak: a frame is a mark, two lengths, a JSON head and a body.

An answer bears the mark of its question: what a unit writes into the connection by itself is no answer.
"""

from __future__ import annotations

import socket
import struct

PREFIX = struct.Struct(">III")

#: No honest frame is longer: 10,000 hosts with weights and a full page of prints stay far below.
LONGEST = 64 << 20

#: A frame split into its mark, its head and its body.
Frame = tuple[int, bytes, bytes]


class BadFrame(Exception):
    """The other side wrote something that is no frame: what a unit printed into the wrong descriptor, say."""


def pack(head: bytes, body: bytes = b"", mark: int = 0) -> bytes:
    return PREFIX.pack(mark, len(head), len(body)) + head + body


def marked(frame: bytes, mark: int) -> bytes:
    """A packed frame with another mark."""
    return mark.to_bytes(4, "big") + frame[4:]


def receive(connection: socket.socket) -> Frame | None:
    """Wait for the next whole frame; None when the other side has closed."""
    inbox = Inbox()
    while True:
        received = connection.recv(inbox.wanted())
        if not received:
            return None
        frame = inbox.feed(received)
        if frame is not None:
            return frame


class Inbox:
    """Collects the bytes of one frame as they come."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._length = 0

    def wanted(self) -> int:
        """How many bytes are worth asking for next."""
        if not self._length:
            return 65536
        return min(self._length - len(self._bytes), 1 << 20)

    def feed(self, received: bytes) -> Frame | None:
        """Add bytes; return the frame once it is whole.

        A side sends its next frame only after the other has answered, so nothing follows a frame.
        """
        self._bytes += received
        if len(self._bytes) < PREFIX.size:
            return None
        mark, head, body = PREFIX.unpack_from(self._bytes)
        self._length = PREFIX.size + head + body
        if self._length > LONGEST or len(self._bytes) > self._length:
            raise BadFrame(f"{len(self._bytes)} bytes that are no frame")
        if len(self._bytes) < self._length:
            return None
        start = PREFIX.size + head
        return mark, bytes(self._bytes[PREFIX.size : start]), bytes(self._bytes[start:])
