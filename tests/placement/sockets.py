"""Ports of engines that are away: one that nobody listens on, one whose listener says nothing."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def refusing_port() -> Iterator[int]:
    """Hold a port without listening, so that nobody else may and every connection is refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextmanager
def silent_port() -> Iterator[int]:
    """Take connections and answer nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]
