"""Answers at the socket: with the state once it is fresh, with decisions, or when the version changes."""

import asyncio
import contextlib
import logging
import resource
import socket
import struct
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from ovirt_placement.config import Config
from ovirt_placement.inventory.connection import HEARD, LENGTH, SOCKET_NAME, address, framed
from ovirt_placement.inventory.decision import Awaited, Base, Decisions, NoSnapshot
from ovirt_placement.inventory.publication import (
    LONGEST_QUESTION,
    Decide,
    Decided,
    Publication,
    Question,
    Refresh,
    State,
    Wake,
    decoded,
    encoded,
    now,
    question_decoder,
)
from ovirt_placement.inventory.service.attempts import Attempts, InventoryMetrics
from ovirt_placement.inventory.service.publisher import Publisher
from ovirt_placement.inventory.stored import OpenIntents
from ovirt_service.errors import UserError
from ovirt_service.repetition import Said

_Answer = TypeVar("_Answer")
#: What answers policy units, given the states to decide on.
Decider = Callable[[Decisions], Callable[[Decide], Decided]]

_log = logging.getLogger(__name__)


#: A reader asks as soon as it is connected; one that was answered may ask again for so long.
_SILENCE_SECONDS, _KEPT_SECONDS = 5.0, 60.0
#: What is not answered within this time is heard, at least.
_HEARD_SECONDS = 0.002
#: Descriptors for everything but readers: connections to the engine, the store, what is published.
_OTHER_DESCRIPTORS = 48
_FEWEST_READERS = 16
_MOST_AT_ONCE = 100
#: What one user of this machine may have at once, so that it keeps nothing from the others: connections,
#: decisions that are made, and states that are made and sent, of which each can be 20 MiB.
_MOST_OF_ONE_USER = 512
_MOST_DECISIONS, _MOST_LONG_DECISIONS, _MOST_STATES = 32, 2, 4
#: Who does not take an answer for so long is closed: it stands in memory meanwhile.
_TAKING_SECONDS = 10.0
#: An engine schedules with some 20 threads; a decision may wait for it or a VM, and holds one of these.
_QUICK_THREADS = 64
#: What can calculate long has few threads of its own, and leaves the processor to the quick ones.
_SLOW_THREADS = 4
SLOW_UNITS = frozenset({"HaAdmissionFilter", "HaAdmissionWeight"})
#: Process, user and group of who is connected, as the kernel has them.
_PEER = struct.Struct("3i")
#: That readers were closed is said again after so long.
_QUIET_SECONDS = 60.0
#: From Python 3.13 on, a server that ends removes its socket, by a path that leads nowhere by then.
_SOCKET_STAYS: dict[str, Any] = {} if sys.version_info < (3, 13) else {"cleanup_socket": False}


def descriptors() -> int:
    """How many files this process may have open: as many as it ever can."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


async def _read(reader: asyncio.StreamReader) -> Question:
    """One question. Raises `ValueError` and `EOFError` if it is none."""
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    if length > LONGEST_QUESTION:
        raise ValueError("no question is so long")
    return decoded(await reader.readexactly(length), question_decoder.decode)


def _user_of(writer: asyncio.StreamWriter) -> int:
    """Who asks, as the kernel knows it."""
    peer: socket.socket = writer.get_extra_info("socket")
    return int(_PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))[1])


async def _while_there(reader: asyncio.StreamReader, answering: Coroutine[Any, Any, _Answer]) -> _Answer:
    """Wait for an answer that may come late, until the one who asks has left, which raises `EOFError`.

    A connection whose other end is gone would take the place of another until something is published.
    """
    answer, gone = asyncio.ensure_future(answering), asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise EOFError
        return answer.result()
    finally:
        answer.cancel()
        gone.cancel()
        await asyncio.wait({answer, gone})  # only then the next question can be read


class _Pool(NamedTuple):
    """Threads for one kind of decisions, and what each user may have of them at once."""

    threads: ThreadPoolExecutor
    shares: defaultdict[int, asyncio.Semaphore]


def _shares(most: int) -> defaultdict[int, asyncio.Semaphore]:
    return defaultdict(lambda: asyncio.Semaphore(most))


class Readers:
    """All who ask, and a `Source` of decisions for any thread; made within the loop that it is for."""

    def __init__(
        self,
        publisher: Publisher,
        metrics: InventoryMetrics,
        config: Config,
        decider: Decider,
        want: Callable[[Refresh], None],
        awaited: Callable[[Refresh], Iterable[Attempts]],
        knows: Callable[[Refresh], bool],
    ) -> None:
        """`want` has what answers a question done soon; `awaited` says which attempts that depends on.

        `knows`: whether the VM of a question is known, or the engine has not had it lately.
        """
        self._publisher, self._metrics = publisher, metrics
        self._want, self._awaited, self._knows = want, awaited, knows
        self._intents = OpenIntents(config.store, config.engine.name)
        self._loop = asyncio.get_running_loop()
        self.decisions = Decisions(self, config.inventory)
        self._decide = decider(self.decisions)
        self._quick = _Pool(ThreadPoolExecutor(_QUICK_THREADS, "decision"), _shares(_MOST_DECISIONS))
        self._slow = _Pool(ThreadPoolExecutor(_SLOW_THREADS, "long-decision"), _shares(_MOST_LONG_DECISIONS))
        self._sending = _shares(_MOST_STATES)
        self._changed = asyncio.Condition()
        #: How many connections each user has.
        self._connected = Counter[int]()
        #: Those that ask nothing at the moment, the oldest first: with their users, and whether they were
        #: answered before.
        self._quiet: dict[asyncio.StreamWriter, tuple[int, bool]] = {}
        #: How many wait for whatever is published next.
        self._waking = 0
        self._said = Said(_QUIET_SECONDS)
        #: How many are let in at a time: they take descriptors before they can be counted.
        self._backlog = min(_MOST_AT_ONCE, descriptors() // 12)
        self._most = max(descriptors() - _OTHER_DESCRIPTORS - self._backlog, _FEWEST_READERS)

    async def report(self) -> None:
        """Let all who wait look again: something was published, or an attempt has ended."""
        async with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Begin no more decisions, and close the store."""
        for pool in (self._quick, self._slow):
            pool.threads.shutdown(wait=False, cancel_futures=True)
        self._intents.close()

    async def listen(self, directory: Path) -> asyncio.Server:
        """Let readers come to the socket of a directory; raises `UserError` if there can be none."""
        try:
            with address(directory) as path:
                server = await asyncio.start_unix_server(
                    self.answer, path, backlog=self._backlog, **_SOCKET_STAYS
                )
        except OSError as error:
            raise UserError(f"[inventory] directory: {directory}: no socket there: {error}") from None
        (directory / SOCKET_NAME).chmod(0o660)
        return server

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one question after the other.

        While there are too many, or too many of one user, who waits for no answer goes for a new one; if all
        do, it is not answered: what is published needs descriptors, too.
        """
        user = _user_of(writer)
        if not self._has_room(user):
            self._refuse(writer)
            return
        self._connected[user] += 1
        seconds = _SILENCE_SECONDS
        try:
            while True:
                self._quiet[writer] = user, seconds == _KEPT_SECONDS
                async with asyncio.timeout(seconds):
                    question = await _read(reader)
                self._quiet.pop(writer, None)
                if isinstance(question, Wake) and self._waking >= self._most // 2:
                    self._refuse(writer)  # who only watches leaves room for who decides
                    return
                self._metrics.questions.labels(type(question).__name__.lower()).inc()
                await self._answer(question, user, reader, writer)
                seconds = _KEPT_SECONDS
        except (OSError, EOFError, ValueError, RecursionError):
            _log.debug("a reader went away, said nothing, or spoke another language")
            writer.transport.abort()
        except asyncio.CancelledError:
            _log.debug("a reader waited until the end")  # who awaits a connection takes this for a mistake
        finally:
            self._connected[user] -= 1
            self._quiet.pop(writer, None)
            writer.close()

    async def _answer(
        self, question: Question, user: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        heard = self._loop.call_later(_HEARD_SECONDS, writer.write, HEARD)

        async def send(answer: State | Decided | int) -> None:
            heard.cancel()
            writer.write(framed(encoded(answer)))
            async with asyncio.timeout(_TAKING_SECONDS):
                await writer.drain()

        try:
            if isinstance(question, Wake):
                await send(await _while_there(reader, self._woken(question.version)))
            elif isinstance(question, Refresh):
                held = self.holds(question)
                error = None if held else await _while_there(reader, self.fresh(question))
                async with self._sending[user]:
                    await send(await self._state_of(question, error))
            else:
                self._publisher.decided_at = now()
                pool = self._slow if question.unit in SLOW_UNITS else self._quick
                async with pool.shares[user]:
                    await send(await self._loop.run_in_executor(pool.threads, self._decide, question))
        finally:
            heard.cancel()

    def _has_room(self, user: int) -> bool:
        """Whether another connection of a user has room, if need be in place of one that asks nothing."""
        if self._connected.total() >= self._most:
            return self._make_room({user for user, _ in self._quiet.values()})
        share = min(_MOST_OF_ONE_USER, max(self._most // 2, _FEWEST_READERS))
        return self._connected[user] < share or self._make_room({user})

    def _make_room(self, users: Container[int]) -> bool:
        """Close a connection of these users that waits for no answer; whether there was one.

        One that was answered goes first: who has it asks again by another.
        """
        quiet = [one for one, (user, _) in self._quiet.items() if user in users]
        oldest = max(quiet, key=lambda one: self._quiet[one][1], default=None)
        if oldest is None:
            return False
        del self._quiet[oldest]
        self._refuse(oldest)
        return True

    def _refuse(self, writer: asyncio.StreamWriter) -> None:
        self._metrics.closed.inc()
        if self._said.is_news("closed"):
            _log.warning("readers are closed, since too many are connected: those first that ask nothing")
        writer.transport.abort()

    async def _state_of(self, question: Refresh, error: str | None) -> State:
        version = self._publisher.version
        if version is None or error is not None:
            moments = None if version is None else version.moments
            return State(moments=moments, error=error or "the inventory knows nothing yet")
        return await self._loop.run_in_executor(self._quick.threads, self._since, version, question.known)

    def _since(self, version: Publication, known: int | None) -> State:
        snapshot = self._intents.over(version.snapshot)
        snapshot = self.decisions.accepted.over(snapshot, version.moments.as_of, now())
        pending = snapshot.pending[len(version.snapshot.pending) :]
        return replace(self._publisher.since(version, known), pending=pending)

    async def fresh(self, question: Refresh) -> str | None:
        """Wait for one turn, look and reading that began late enough for all who wait; or say what failed."""
        # What is to come is awaited by `Wake` alone.
        question = replace(question, not_before=min(question.not_before, now()))
        while not self.holds(question):
            for tried in self._awaited(question):
                if tried.began >= question.not_before and tried.error is not None:
                    return tried.error
            self._want(question)
            async with self._changed:
                await self._changed.wait()
        return None

    def holds(self, question: Refresh) -> bool:
        """Whether the version is what the question asks for; from any thread."""
        moments = self._publisher.moments
        at = min(moments.as_of, moments.whole_at) if question.whole else moments.as_of
        return self._publisher.number > 0 and at >= question.not_before and self._knows(question)

    async def _woken(self, version: int) -> int:
        self._waking += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: self._publisher.number not in (0, version))
        finally:
            self._waking -= 1
        return self._publisher.number

    def place_accepted(self) -> None:
        """Guess where what was accepted will be, while nothing shows yet what came of it."""
        if self.decisions.accepted.has_news and (last := self.last()) is not None:
            self.decisions.accepted.over(last.snapshot, last.as_of, now())

    def base(self, max_age: float, until: float, vm: str | None = None, *, patient: bool = True) -> Base:
        """The version, once it is fresh enough and the engine was asked for the VM."""
        question = Refresh(now() - max_age, max_age <= 0, vm)
        if not self.holds(question):
            if not patient and not self._knows(question):
                self._loop.call_soon_threadsafe(self._want, question)
                raise Awaited("the engine is being asked for a VM that it has not shown yet")
            waiting = asyncio.run_coroutine_threadsafe(self.fresh(question), self._loop)
            try:
                error = waiting.result(max(0.0, until - time.monotonic()))
            except TimeoutError:
                waiting.cancel()
                raise NoSnapshot("no fresh snapshot in time: the engine has not answered yet") from None
            if error is not None:
                raise NoSnapshot(f"no fresh snapshot: {error}")
        if (last := self.last()) is None:
            raise NoSnapshot("no fresh snapshot: nothing was read yet")
        return last

    def as_of(self) -> float | None:
        """The moment of the version; None before one was read: what was saved is not waited for in vain."""
        version = self._publisher.version
        return None if version is None or not self._publisher.has_read else version.moments.as_of

    def last(self) -> Base | None:
        """The version, however old; None before there is one."""
        version = self._publisher.version
        if version is None:
            return None
        saved = not self._publisher.has_read
        return Base(self._intents.over(version.snapshot), version.moments.as_of, saved)
