"""The service's socket: a reader asks for a newer snapshot, or to be woken by the next one."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ovirt_placement.inventory.published.publication import SOCKET_NAME


class Refresh(msgspec.Struct, tag="refresh", frozen=True):
    """Answer when a snapshot is published that holds at this moment or later.

    Usually it is enough that engine and store tell of no change since. With `whole`, everything of the engine
    must have been read since: for who may not rely on events, which can be late.
    """

    not_before: float
    whole: bool = False


class Wake(msgspec.Struct, tag="wake", frozen=True):
    """Answer when another version than this is published."""

    version: int


class Reply(msgspec.Struct, frozen=True):
    """The published version, or why there is no newer one."""

    version: int
    error: str | None = None


Question = Refresh | Wake


class NoService(Exception):
    """Nobody publishes here; a socket that nobody answers was left by a process that died."""


class NoAnswer(Exception):
    """The service did not answer in time."""


@contextmanager
def address(directory: Path) -> Iterator[str]:
    """The socket's path by way of a descriptor: as it stands it may be longer than a socket's path can be."""
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_NAME}"
    finally:
        os.close(descriptor)


def ask(directory: Path, question: Question, timeout: float) -> Reply:
    """Ask the service and wait for its answer, at most so many seconds."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(max(timeout, 0.001))
        try:
            with address(directory) as path:
                connection.connect(path)
            connection.sendall(msgspec.json.encode(question) + b"\n")
            answer = connection.makefile("rb").readline()
        except TimeoutError:
            raise NoAnswer from None
        except OSError:
            raise NoService from None
    if not answer.endswith(b"\n"):
        raise NoService  # it ended while we waited
    return msgspec.json.decode(answer, type=Reply)
