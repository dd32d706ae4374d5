"""The service that follows the engine for everyone on this machine, and publishes what it knows."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from ovirt_placement.config import Config
from ovirt_placement.engine.connection import EngineAway, EngineConnection, connect
from ovirt_placement.engine.policies import PolicyReader
from ovirt_placement.errors import UserError
from ovirt_placement.inventory import publication
from ovirt_placement.inventory.conversation import Question, Refresh, Reply, address
from ovirt_placement.inventory.follower import Follower, read
from ovirt_placement.inventory.needs import NOTHING, Needs
from ovirt_placement.inventory.publication import SOCKET_NAME, Moments, Writer
from ovirt_placement.inventory.reconciliation import Reconciliation, Scope
from ovirt_placement.model import Snapshot

#: An engine that is away is asked again after 1 s, 2 s, 4 s ... and at least so often.
_LONGEST_PAUSE_SECONDS = 10.0
#: However many ask for it, an engine that is away is not asked more often than this.
_SHORTEST_PAUSE_SECONDS = 1.0

_Result = TypeVar("_Result")

_log = logging.getLogger(__name__)


def run(config: Config, ready: Callable[[], None]) -> None:
    """Publish until SIGTERM or SIGINT; `ready` is called once the first snapshot is there.

    Raises `UserError` if the directory cannot be used, is another service's, or, before the first
    snapshot, if the engine cannot be talked to because of what a person must set right.
    """
    directory = config.inventory.directory
    owner = _claim(directory)
    writer = Writer(directory)
    try:
        with connect(config.engine) as feed, connect(config.engine) as bulk, connect(config.engine) as slow:
            asyncio.run(_Service(config, feed, bulk, slow, writer, ready).serve())
    finally:
        writer.withdraw()
        (directory / SOCKET_NAME).unlink(missing_ok=True)
        os.close(owner)


def _claim(directory: Path) -> int:
    """Make the directory if need be, and lock it: the lock ends with this process, however that ends."""
    try:
        directory.mkdir(exist_ok=True)
        owner = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        if not os.access(directory, os.W_OK):
            raise PermissionError(0, "may not write there")
    except OSError as error:
        raise UserError(f"[inventory] directory: {directory}: {error.strerror}") from None
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(owner)
        raise UserError(f"[inventory] directory: {directory}: another inventory publishes there") from None
    (directory / SOCKET_NAME).unlink(missing_ok=True)
    return owner


@dataclass(frozen=True)
class _State:
    """What one turn found; without a snapshot there is nothing yet that may be believed."""

    snapshot: Snapshot | None
    moments: Moments
    needs: Needs


class _Attempts:
    """One kind of request to the engine: when it was last tried, what became of it, when to try again."""

    def __init__(self) -> None:
        self.began = float("-inf")
        self.error: str | None = None
        self.failures = 0
        self.wanted = asyncio.Event()

    def begin(self) -> float:
        self.wanted.clear()
        self.began, self.error = publication.now(), None
        return self.began

    async def pause(self, longer: float) -> None:
        """Wait so long, or for a reader who needs it now; after a failure, longer and longer."""
        if self.failures:
            await asyncio.sleep(_SHORTEST_PAUSE_SECONDS)
            longer = min(2.0 ** (self.failures - 1), _LONGEST_PAUSE_SECONDS) - _SHORTEST_PAUSE_SECONDS
        try:
            await asyncio.wait_for(self.wanted.wait(), max(0.0, longer))
        except TimeoutError:
            return


class _Service:
    """Loops, each with its own connection: one follows the events, others make the larger readings.

    Details of VMs take so long that nothing else may wait for them.
    """

    def __init__(
        self,
        config: Config,
        feed: EngineConnection,
        bulk: EngineConnection,
        slow: EngineConnection,
        writer: Writer,
        ready: Callable[[], None],
    ) -> None:
        self._directory = config.inventory.directory
        self._interval = config.inventory.interval_seconds
        self._bulk, self._slow = bulk, slow
        self._policies = PolicyReader()
        self._follower = Follower(feed, publication.now)
        self._reconciliation = Reconciliation(config.inventory, Scope.WHOLE, Scope.HOSTS, Scope.STATISTICS)
        self._details = Reconciliation(config.inventory, Scope.DETAILS)
        self._writer = writer
        self._ready = ready
        self._version = 0
        self._moments = Moments(float("-inf"))
        self._needs = NOTHING

    async def serve(self) -> None:
        """Read and answer until a signal comes, or until a first reading shows a wrong set-up."""
        self._changed = asyncio.Condition()
        self._following, self._reading, self._detailing = _Attempts(), _Attempts(), _Attempts()
        try:
            with address(self._directory) as path:
                server = await asyncio.start_unix_server(self._answer, path)
        except OSError as error:
            raise UserError(f"[inventory] directory: {self._directory}: no socket there: {error}") from None
        (self._directory / SOCKET_NAME).chmod(0o660)
        loops = [
            asyncio.create_task(self._keep_following()),
            asyncio.create_task(self._keep_reading(self._bulk, self._reading, self._reconciliation)),
            asyncio.create_task(self._keep_reading(self._slow, self._detailing, self._details)),
        ]
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        stopping = asyncio.create_task(stopped.wait())
        try:
            ended, _ = await asyncio.wait([*loops, stopping], return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
            _log.info("ends")
        finally:
            for task in (*loops, stopping):
                task.cancel()
            server.close()

    async def _keep_following(self) -> None:
        while True:
            began = self._following.begin()
            state = await self._attempt(self._following, self._turn)
            if self._reconciliation.demand(self._follower.whole_needed):
                self._reading.wanted.set()
            if self._details.demand(self._follower.details_needed):
                self._detailing.wanted.set()
            if state is not None:
                await self._publish(state)
            await self._tell()
            await self._following.pause(began + self._interval - publication.now())

    async def _keep_reading(
        self, connection: EngineConnection, attempts: _Attempts, due: Reconciliation
    ) -> None:
        while True:
            began, needs = attempts.begin(), self._needs
            scope = due.next_reading(began, needs)
            if scope is not None:
                reading = partial(read, connection, scope, self._policies, needs, began)
                if (found := await self._attempt(attempts, reading)) is not None:
                    due.done(scope, began)
                    self._follower.hand_in(found)
                    self._following.wanted.set()
                await self._tell()
            await attempts.pause(due.pause(publication.now(), self._needs))

    async def _attempt(self, attempts: _Attempts, ask: Callable[[], _Result]) -> _Result | None:
        """Ask the engine in a thread; None if that failed. Raises what no waiting can heal at the start."""
        try:
            result = await _in_thread(ask)
        except UserError as error:
            if not self._version and not isinstance(error, EngineAway):
                raise
            self._failed(attempts, str(error))
        except Exception as error:
            _log.exception("reading the engine failed")
            self._failed(attempts, f"reading the engine failed: {error}")
        else:
            failed, attempts.failures = attempts.failures, 0
            if failed and not self._failures:
                _log.info("the engine answers again")
            return result
        return None

    @property
    def _failures(self) -> int:
        return self._following.failures + self._reading.failures + self._detailing.failures

    def _failed(self, attempts: _Attempts, text: str) -> None:
        if not self._failures:
            _log.warning("%s; asking again until it answers", text)
        attempts.error = text
        attempts.failures += 1

    def _turn(self) -> _State:
        follower = self._follower
        follower.turn()
        snapshot = follower.snapshot() if follower.believable else None
        moments = replace(follower.moments, store_asked_at=follower.moments.read_at)
        return _State(snapshot, moments, follower.needs)

    async def _publish(self, state: _State) -> None:
        if state.needs != self._needs:
            self._needs = state.needs
            self._reading.wanted.set()
            self._detailing.wanted.set()
        if state.snapshot is None:
            return  # nothing that may be believed
        first = not self._version
        try:
            self._version = await _in_thread(partial(self._writer.publish, state.snapshot, state.moments))
        except OSError as error:
            raise UserError(
                f"[inventory] directory: {self._directory}: cannot publish there: {error.strerror}"
            ) from None
        self._moments = state.moments
        if first:
            self._ready()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            question: Question = msgspec.json.decode(await reader.readline(), type=Question)
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
        """Answer all who wait after one turn, and one reading, that began late enough for each of them."""
        while not self._holds(question):
            if (error := self._hindrance(question)) is not None:
                return Reply(self._version, error)
            if question.whole and self._reconciliation.demand(question.not_before):
                self._reading.wanted.set()
            if self._following.began < question.not_before:
                self._following.wanted.set()
            async with self._changed:
                await self._changed.wait()
        return Reply(self._version)

    def _holds(self, question: Refresh) -> bool:
        moments = self._moments
        at = min(moments.read_at, moments.whole_at) if question.whole else moments.read_at
        return at >= question.not_before

    def _hindrance(self, question: Refresh) -> str | None:
        """Say why the question cannot be answered now: what it waits for was tried since, and failed."""
        awaited = [self._following]
        if question.whole or not self._follower.believable:
            awaited.append(self._reading)
        tried = (attempts.error for attempts in awaited if attempts.began >= question.not_before)
        return next((error for error in tried if error is not None), None)

    async def _woken(self, version: int) -> Reply:
        async with self._changed:
            await self._changed.wait_for(lambda: self._version not in (0, version))
        return Reply(self._version)


async def _in_thread(work: Callable[[], _Result]) -> _Result:
    """Work in a thread that the end of the process does not wait for."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[_Result] = loop.create_future()

    def settle(done: Callable[[], None]) -> None:
        if not result.done():
            done()

    def run() -> None:
        try:
            done = partial(result.set_result, work())
        except Exception as error:  # told to the loop
            done = partial(result.set_exception, error)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, done)

    threading.Thread(target=run, daemon=True).start()
    return await result
