"""Puts a question to the service's socket and waits for the answer, by the standard library alone.

One question after the other, in frames: a length, and what is asked or answered. What the service cannot
answer at once it says that it has heard, by an empty frame: so a slow engine, for which to wait, differs from
a service that hangs.
"""

import math
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ovirt_service.repetition import Said

SOCKET_NAME = "socket"

#: A service that lives says that it has heard within this time, or within this share of what a reader has.
_HEARD_SECONDS = 1.0
_HEARD_SHARE = 0.25
LENGTH = struct.Struct(">I")
#: What the service says when it has heard a question.
HEARD = LENGTH.pack(0)
_LONGEST_ANSWER = 1 << 30

#: A service that hangs is asked again after this time.
_HANGING_SECONDS = 5.0
#: One that has not heard a short question, waited for less than that, for so long hangs.
_UNHEARD_SECONDS, _SHORT_SECONDS = 1.0, 5.0

_said = Said()


class NoService(Exception):
    """No service answers here; a socket without an answer was left by a process that died."""


class NotAllowed(NoService):
    """The service is not for this user."""


class Hangs(NoService):
    """The service has not even heard the question: it hangs, or is stopped."""


class NoAnswer(Exception):
    """The service did not answer in time."""


def framed(content: bytes) -> bytes:
    """A frame with this in it."""
    return LENGTH.pack(len(content)) + content


@contextmanager
def address(directory: Path) -> Iterator[str]:
    """The socket's path by way of a descriptor: as it stands it may be longer than a socket's path can be."""
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_NAME}"
    finally:
        os.close(descriptor)


class Services:
    """What a process knows of the services that it has asked, by their directories, and its ways to them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """The clock is one that is never set, in seconds."""
        self._clock = clock
        #: Connections that are kept for the next question, each with the process that has opened it.
        self._kept: dict[Path, tuple[int, socket.socket]] = {}
        #: Services that have heard no question: since when, and until when they are not asked.
        self._unheard: dict[Path, tuple[float, float]] = {}

    def ask(self, directory: Path, question: bytes, timeout: float) -> bytearray:
        """As `put`; one that has not heard lately is not asked again so soon."""
        if directory in self._unheard and self._unheard[directory][1] > self._clock():
            raise Hangs
        try:
            reply = self.put(directory, question, timeout)
        except Hangs:
            now = self._clock()
            first, _ = self._unheard.setdefault(directory, (now, -math.inf))
            if now - first < _UNHEARD_SECONDS and timeout < _SHORT_SECONDS:
                raise NoAnswer from None  # after a short wait it looks like a busy machine
            self._unheard[directory] = first, now + _HANGING_SECONDS
            if _said.is_news(directory):
                _warn("the inventory at %s hangs", directory)
            raise
        except NoAnswer:
            self._heard(directory)
            raise
        self._heard(directory)
        return reply

    def put(self, directory: Path, question: bytes, timeout: float) -> bytearray:
        """Ask the service of a directory and wait for its answer, at most this many seconds.

        Raises `NoAnswer` if it takes longer, `Hangs` if it has not even heard, and `NoService` if none runs,
        it ends, or speaks another language.
        """
        until = time.monotonic() + timeout
        heard = time.monotonic() + max(min(_HEARD_SECONDS, timeout * _HEARD_SHARE), 0.001)
        connection = self._borrow_connection(directory)
        try:
            length = None if connection is None else _put_again(connection, question, heard)
            if connection is None or length is None:
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                length = _put_question(connection, question, heard, directory)
            length = length or _received_length(connection, until)
            if length > _LONGEST_ANSWER:
                raise NoService
            answer = _received(connection, length, until)
            # Another thread may have kept its own meanwhile.
            if self._kept.setdefault(directory, (os.getpid(), connection))[1] is connection:
                connection = None
            return answer
        except TimeoutError:
            raise NoAnswer from None
        except PermissionError:
            raise NotAllowed from None
        except OSError:
            raise NoService from None
        finally:
            if connection is not None:
                connection.close()

    def close(self) -> None:
        """Close what is open; who asks again opens it again."""
        while self._kept:
            self._kept.popitem()[1][1].close()

    def _borrow_connection(self, directory: Path) -> socket.socket | None:
        """The connection to a service that was kept, if there is one, until it is kept again."""
        process, connection = self._kept.pop(directory, (0, None))
        if connection is not None and process != os.getpid():
            connection.close()  # a fork asks by its own: answers would go to either
            return None
        return connection

    def _heard(self, directory: Path) -> None:
        self._unheard.pop(directory, None)
        if _said.is_over(directory):
            _warn("the inventory at %s answers again", directory)


def _put_again(connection: socket.socket, question: bytes, until: float) -> int | None:
    """Put another question; None where the service has closed the connection."""
    try:
        return _put_question(connection, question, until)
    except Hangs:
        raise
    except (OSError, NoService):
        connection.close()
        return None


def _put_question(
    connection: socket.socket, question: bytes, until: float, directory: Path | None = None
) -> int:
    """Put a question, connecting to a service before if one is given. Raises `Hangs` if it is not heard.

    Returns the length of its answer, or 0 when it is heard.
    """
    try:
        if directory is not None:
            connection.settimeout(max(until - time.monotonic(), 0.001))
            with address(directory) as path:
                connection.connect(path)
        connection.settimeout(max(until - time.monotonic(), 0.001))
        connection.sendall(framed(question))
        return _received_length(connection, until)
    except (TimeoutError, BlockingIOError):  # the latter where the queue of connections is full
        raise Hangs from None


def _received_length(connection: socket.socket, until: float) -> int:
    return int(LENGTH.unpack(_received(connection, LENGTH.size, until))[0])


def _received(connection: socket.socket, length: int, until: float) -> bytearray:
    """An answer so long. Raises `NoService` if the service ends, `TimeoutError` if it comes too late."""
    found = bytearray(length)
    view, at = memoryview(found), 0
    while at < length:
        connection.settimeout(max(until - time.monotonic(), 0.001))
        got = connection.recv_into(view[at:])
        if not got:
            raise NoService
        at += got
    return found


def _warn(text: str, directory: Path) -> None:
    import logging  # which takes as long to load as all the rest

    logging.getLogger(__name__).warning(text, directory)
