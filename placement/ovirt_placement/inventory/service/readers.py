"""Answers readers at the socket: when there is a newer publication, or why there is none."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ovirt_placement.inventory.published.protocol import HEARD, Question, Refresh, Reply, Wake, address
from ovirt_placement.inventory.published.publication import SOCKET_NAME, now
from ovirt_placement.inventory.service.attempts import Attempts
from ovirt_placement.inventory.service.metrics import InventoryMetrics
from ovirt_placement.inventory.service.publisher import Publisher
from ovirt_service.errors import UserError
from ovirt_service.saying import Said

_log = logging.getLogger(__name__)


#: A reader asks as soon as it is connected.
_SILENCE_SECONDS = 5.0
#: Descriptors for everything but readers: connections to the engine, the store, what is published.
_OTHER_DESCRIPTORS = 48
_FEWEST_READERS = 16
_MOST_AT_ONCE = 100
#: That readers were closed is said again after so long.
_QUIET_SECONDS = 60.0
#: From Python 3.13 on, a server that ends removes its socket, by a path that leads nowhere by then.
_SOCKET_STAYS: dict[str, Any] = {} if sys.version_info < (3, 13) else {"cleanup_socket": False}


class Unwritable(Exception):
    """What is known cannot be published: there is nothing fresh to read."""


def descriptors() -> int:
    """How many files this process may have open: as many as it ever can."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _backlog() -> int:
    """How many readers are let in at a time: they take descriptors before they can be counted."""
    return min(_MOST_AT_ONCE, descriptors() // 12)


class Readers:
    """All who wait; made within the loop of asyncio that it is for."""

    def __init__(
        self,
        publisher: Publisher,
        metrics: InventoryMetrics,
        want: Callable[[Refresh], None],
        awaited: Callable[[Refresh], Iterable[Attempts]],
        knows: Callable[[Refresh], bool],
    ) -> None:
        """`want` has what answers a question done soon; `awaited` says which attempts that depends on.

        `knows`: whether the VM of a question is published, or the engine has not had it lately.
        """
        self._publisher = publisher
        self._metrics = metrics
        self._want = want
        self._awaited = awaited
        self._knows = knows
        self._changed = asyncio.Condition()
        self._connected = 0
        #: Those that have asked nothing yet, the oldest first.
        self._silent: dict[asyncio.StreamWriter, None] = {}
        #: How many wait for whatever is published next.
        self._waking = 0
        self._said = Said(_QUIET_SECONDS)
        self._most = descriptors() - _OTHER_DESCRIPTORS - _backlog()

    async def report(self) -> None:
        """Let all who wait look again: something was published, or an attempt has ended."""
        async with self._changed:
            self._changed.notify_all()

    async def listen(self, directory: Path) -> asyncio.Server:
        """Let readers come to the socket of a directory; raises `UserError` if there can be none."""
        try:
            with address(directory) as path:
                server = await asyncio.start_unix_server(
                    self.answer, path, backlog=_backlog(), **_SOCKET_STAYS
                )
        except OSError as error:
            raise UserError(f"[inventory] directory: {directory}: no socket there: {error}") from None
        (directory / SOCKET_NAME).chmod(0o660)
        return server

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one question; this is what a connection is for.

        While there are too many, who has said nothing for longest goes for a new one; if all have asked, it
        is not answered: what is published needs descriptors, too.
        """
        if self._connected >= max(self._most, _FEWEST_READERS) and not self._make_room():
            self._refuse(writer)
            return
        self._connected += 1
        self._silent[writer] = None
        try:
            async with asyncio.timeout(_SILENCE_SECONDS):
                line = await reader.readline()
            self._silent.pop(writer, None)
            question: Question = msgspec.json.decode(line, type=Question)
            if isinstance(question, Wake) and self._waking >= self._most // 2:
                self._refuse(writer)  # who only watches leaves room for who decides
                return
            writer.write(HEARD)
            self._metrics.questions.labels(type(question).__name__.lower()).inc()
            if isinstance(question, Refresh):
                reply = await self._refreshed(question)
            else:
                reply = await self._woken(question.version)
            writer.write(msgspec.json.encode(reply) + b"\n")
            await writer.drain()
        except (OSError, ValueError, RecursionError):
            _log.debug("a reader went away, said nothing, or spoke another language")
        except Unwritable:
            _log.debug("a reader has to read the engine itself")
        except asyncio.CancelledError:
            _log.debug("a reader waited until the end")  # who awaits a connection takes this for a mistake
        finally:
            self._connected -= 1
            self._silent.pop(writer, None)
            writer.close()

    def _make_room(self) -> bool:
        """Close a connection that has asked nothing yet; whether there was one."""
        oldest = next(iter(self._silent), None)
        if oldest is None:
            return False
        del self._silent[oldest]
        self._refuse(oldest)
        return True

    def _refuse(self, writer: asyncio.StreamWriter) -> None:
        self._metrics.closed.inc()
        if self._said.is_news("closed"):
            _log.warning("readers are closed, since too many are connected: those first that ask nothing")
        writer.transport.abort()

    async def _refreshed(self, question: Refresh) -> Reply:
        """Answer all who wait after one turn, look and reading that began late enough for each of them."""
        # What is to come is awaited by `Wake` alone.
        question = replace(question, not_before=min(question.not_before, now()))
        if question.unreadable is not None:
            await self._publisher.repair(reported=True)
        while not self._holds(question):
            if (error := self._failure(question)) is not None:
                return Reply(self._publisher.version, error)
            self._want(question)
            if not question.patient and not self._knows(question):
                return Reply(self._publisher.version, awaited=True)
            async with self._changed:
                await self._changed.wait()
            if self._publisher.unwritable:
                raise Unwritable
        return Reply(self._publisher.version)

    def _holds(self, question: Refresh) -> bool:
        moments = self._publisher.moments
        at = min(moments.as_of, moments.whole_at) if question.whole else moments.as_of
        return at >= question.not_before and self._knows(question)

    def _failure(self, question: Refresh) -> str | None:
        """Say why the question cannot be answered now: what it waits for was tried since, and failed."""
        tried = (each.error for each in self._awaited(question) if each.began >= question.not_before)
        return next((error for error in tried if error is not None), None)

    async def _woken(self, version: int) -> Reply:
        self._waking += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: self._publisher.version not in (0, version))
        finally:
            self._waking -= 1
        return Reply(self._publisher.version)
