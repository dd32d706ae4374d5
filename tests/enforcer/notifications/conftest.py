"""A receiver of alerts that answers whatever a test likes, byte by byte."""

import itertools
import json
import socketserver
import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
import trustme

TAKEN = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Received(NamedTuple):
    head: str
    alerts: list[dict[str, Any]]


class Receiver(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, certificate: trustme.LeafCert | None) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port = self.server_address[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}/api/v2/alerts"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        #: What is sent for each request, piece by piece.
        self.answers: Iterator[Iterable[bytes]] = itertools.repeat([TAKEN])
        self.received: list[Received] = []
        #: Bytes that were sent, and connections that the other side has ended before all was.
        self.sent = 0
        self.hung_up = 0
        self.over = threading.Event()

    def handle_error(self, *_: object) -> None:
        """Say nothing of who hangs up."""


class _Connection(socketserver.StreamRequestHandler):
    server: Receiver

    def handle(self) -> None:
        while head := self._head():
            length = next(int(line[15:]) for line in head.splitlines() if line.startswith("Content-Length"))
            self.server.received.append(Received(head, json.loads(self.rfile.read(length))))
            pieces = list(itertools.islice(answer := iter(next(self.server.answers)), 1))
            try:
                for piece in itertools.chain(pieces, answer):
                    self.wfile.write(piece)
                    self.server.sent += len(piece)
            except OSError:
                self.server.hung_up += 1
                return
            if pieces != [TAKEN]:
                return

    def _head(self) -> str:
        lines = itertools.takewhile(lambda line: line.strip(), iter(self.rfile.readline, b""))
        return b"".join(lines).decode()


def dripping(receiver: Receiver, drop: bytes) -> Iterator[bytes]:
    """A drop every so often, until the receiver's end."""
    while not receiver.over.wait(0.05):
        yield drop


@contextmanager
def receiving(certificate: trustme.LeafCert | None = None) -> Iterator[Receiver]:
    with Receiver(certificate) as receiver:
        thread = threading.Thread(target=receiver.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield receiver
        finally:
            receiver.over.set()
            receiver.shutdown()
            thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started
