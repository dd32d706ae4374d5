"""Answers readers at the socket: when there is a newer publication, or why there is none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

import msgspec

from ovirt_placement.inventory.published.protocol import Question, Refresh, Reply
from ovirt_placement.inventory.service.attempts import Attempts
from ovirt_placement.inventory.service.metrics import Metrics
from ovirt_placement.inventory.service.publisher import Publisher

_log = logging.getLogger(__name__)


class Readers:
    """All who wait; made within the loop of asyncio that it is for."""

    def __init__(
        self,
        publisher: Publisher,
        metrics: Metrics,
        want: Callable[[Refresh], None],
        awaited: Callable[[Refresh], Iterable[Attempts]],
    ) -> None:
        """`want` has what answers a question done soon; `awaited` says which attempts that depends on."""
        self._publisher = publisher
        self._metrics = metrics
        self._want = want
        self._awaited = awaited
        self._changed = asyncio.Condition()

    async def tell(self) -> None:
        """Let all who wait look again: something was published, or an attempt has ended."""
        async with self._changed:
            self._changed.notify_all()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one question; this is what a connection is for."""
        try:
            question: Question = msgspec.json.decode(await reader.readline(), type=Question)
            self._metrics.questions.labels(type(question).__name__.lower()).inc()
            if isinstance(question, Refresh):
                reply = await self._refreshed(question)
            else:
                reply = await self._woken(question.version)
            writer.write(msgspec.json.encode(reply) + b"\n")
            await writer.drain()
        except (OSError, ValueError):
            _log.debug("a reader went away, or spoke another language")
        finally:
            writer.close()

    async def _refreshed(self, question: Refresh) -> Reply:
        """Answer all who wait after one turn, look and reading that began late enough for each of them."""
        while not self._holds(question):
            if (error := self._failure(question)) is not None:
                return Reply(self._publisher.version, error)
            self._want(question)
            async with self._changed:
                await self._changed.wait()
        return Reply(self._publisher.version)

    def _holds(self, question: Refresh) -> bool:
        moments = self._publisher.moments
        at = min(moments.as_of, moments.whole_at) if question.whole else moments.as_of
        return at >= question.not_before

    def _failure(self, question: Refresh) -> str | None:
        """Say why the question cannot be answered now: what it waits for was tried since, and failed."""
        tried = (each.error for each in self._awaited(question) if each.began >= question.not_before)
        return next((error for error in tried if error is not None), None)

    async def _woken(self, version: int) -> Reply:
        async with self._changed:
            await self._changed.wait_for(lambda: self._publisher.version not in (0, version))
        return Reply(self._publisher.version)
