"""The service's socket: a reader asks for a newer snapshot, or to be woken by the next one.

The service says at once that it has heard the question, by an empty line, and answers when it can: so a
reader distinguishes a slow engine, for which to wait, from a service that hangs.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from ovirt_placement.inventory.published.publication import SOCKET_NAME


class Refresh(msgspec.Struct, tag="refresh", frozen=True):
    """Answer when a snapshot is published that holds at this moment or later.

    Usually it is enough that engine and store report no change since. With `whole`, everything of the engine
    must have been read since: for who may not rely on events, which can be late. With `vm`, the engine must
    have been asked for that VM lately if it is not among those that are known; to who is not `patient` it is
    said at once that this is awaited. `unreadable` is the version that the reader found damaged.
    """

    not_before: float
    whole: bool = False
    vm: str | None = None
    unreadable: int | None = None
    patient: bool = True


class Wake(msgspec.Struct, tag="wake", frozen=True):
    """Answer when another version than this is published."""

    version: int


class Reply(msgspec.Struct, frozen=True):
    """The published version, or why there is no newer one."""

    version: int
    error: str | None = None
    #: Whether the VM that was asked about is being looked for.
    awaited: bool = False


Question = Refresh | Wake
#: What the service says when it has heard a question.
HEARD = b"\n"
#: A service that lives says so within this time, or within this share of what a reader has.
_HEARD_SECONDS = 1.0
_HEARD_SHARE = 0.25
_LONGEST_LINE = 2**20


class NoService(Exception):
    """Nobody publishes here; a socket that nobody answers was left by a process that died."""


class Hangs(NoService):
    """The service has not even heard the question: it hangs, or is stopped."""


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
    """Ask the service and wait for its answer, at most this many seconds.

    Raises `NoAnswer` if it takes longer, and `NoService` if there is nobody, nobody any more, or nobody who
    hears.
    """
    until = time.monotonic() + timeout
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(max(min(_HEARD_SECONDS, timeout * _HEARD_SHARE), 0.001))
            answers = _asked(connection, directory, question)
            connection.settimeout(max(until - time.monotonic(), 0.001))
            answer = answers.readline(_LONGEST_LINE)
    except TimeoutError:
        raise NoAnswer from None
    except OSError:
        raise NoService from None
    try:
        return msgspec.json.decode(answer, type=Reply)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NoService from None  # it ended while we waited, or speaks another language


def _asked(connection: socket.socket, directory: Path, question: Question) -> BinaryIO:
    """Ask, and wait until the service has heard that."""
    try:
        with address(directory) as path:
            connection.connect(path)
        connection.sendall(msgspec.json.encode(question) + b"\n")
        answers = connection.makefile("rb")
        if answers.readline(_LONGEST_LINE) != HEARD:
            raise NoService
    except (TimeoutError, BlockingIOError):  # the latter if not even the queue of connections takes another
        raise Hangs from None
    return answers
