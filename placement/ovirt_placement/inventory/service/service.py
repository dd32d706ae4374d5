"""The service that follows the engine for everyone on this machine, and publishes what it knows."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineAway, EngineConnection, connect
from ovirt_placement.engine.reading.policies import PolicyReader
from ovirt_placement.inventory.client.keys import as_recorded, levels
from ovirt_placement.inventory.on_demand.details import referred
from ovirt_placement.inventory.on_demand.needs import NOTHING, Needs
from ovirt_placement.inventory.published.protocol import Question, Refresh, Reply, address
from ovirt_placement.inventory.published.publication import SOCKET_NAME, Moments, Writer, now
from ovirt_placement.inventory.service.attempts import Attempts, in_thread
from ovirt_placement.inventory.service.follower import Follower, read
from ovirt_placement.inventory.service.key_watch import KeyWatch, WatchedKeys
from ovirt_placement.inventory.service.reconciliation import Reconciliation, Scope
from ovirt_placement.model import Snapshot
from ovirt_service.errors import UserError

#: How often the store is looked at for placement keys, beside when somebody waits for that.
_LOOK_SECONDS = 0.25
#: So long the first publication waits for the details that placement keys refer to: a decision without them
#: may put a VM where it must not be, but without a publication there is none.
_FIRST_DETAILS_SECONDS = 10.0

_Result = TypeVar("_Result")

_NEVER = float("-inf")

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


def _lacks_details(moments: Moments, keys: WatchedKeys) -> bool:
    """Whether what keys refer to is still to be read, and worth waiting for."""
    late = now() > moments.whole_at + _FIRST_DETAILS_SECONDS
    return bool(referred(levels(keys.records))) and moments.details_at == _NEVER and not late


class _Service:
    """Loops, each with its own connection: one follows the events, others make the larger readings.

    Details of VMs take so long that nothing else may wait for them. One loop looks at the store: nothing
    waits for that, either, but the first publication and who wants to know what the store says now.
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
        self._follower = Follower(feed, now)
        self._reconciliation = Reconciliation(config.inventory, Scope.WHOLE, Scope.HOSTS, Scope.STATISTICS)
        self._details = Reconciliation(config.inventory, Scope.DETAILS)
        self._key_watch = KeyWatch(config.store)
        self._writer = writer
        self._ready = ready
        self._version = 0
        self._moments = Moments(_NEVER)
        self._needs = NOTHING
        self._state: _State | None = None
        self._keys = WatchedKeys()

    async def serve(self) -> None:
        """Read and answer until a signal comes, or until a first reading shows a wrong set-up."""
        self._changed = asyncio.Condition()
        self._publishing = asyncio.Lock()
        self._following, self._reading, self._detailing = Attempts(), Attempts(), Attempts()
        self._looking = Attempts()
        try:
            with address(self._directory) as path:
                server = await asyncio.start_unix_server(self._answer, path)
        except OSError as error:
            raise UserError(f"[inventory] directory: {self._directory}: no socket there: {error}") from None
        (self._directory / SOCKET_NAME).chmod(0o660)
        loops = [
            asyncio.create_task(self._keep_following()),
            asyncio.create_task(self._keep_looking()),
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
                self._state = state
                self._need(state.needs)
                await self._publish()
            await self._tell()
            await self._following.pause(began + self._interval - now())

    async def _keep_looking(self) -> None:
        while True:
            began = self._looking.begin()
            self._keys = await in_thread(partial(self._key_watch.look, began))
            await self._publish()
            await self._tell()
            await self._looking.pause(began + _LOOK_SECONDS - now())

    async def _keep_reading(
        self, connection: EngineConnection, attempts: Attempts, due: Reconciliation
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
            await attempts.pause(due.pause(now(), self._needs))

    async def _attempt(self, attempts: Attempts, ask: Callable[[], _Result]) -> _Result | None:
        """Ask the engine in a thread; None if that failed. Raises what no waiting can heal at the start."""
        try:
            result = await in_thread(ask)
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

    def _failed(self, attempts: Attempts, text: str) -> None:
        if not self._failures:
            _log.warning("%s; asking again until it answers", text)
        attempts.error = text
        attempts.failures += 1

    def _turn(self) -> _State:
        follower = self._follower
        follower.key_levels = levels(self._keys.records)
        follower.turn()
        snapshot = follower.snapshot() if follower.believable else None
        return _State(snapshot, follower.moments, follower.needs)

    def _need(self, needs: Needs) -> None:
        if needs != self._needs:
            self._needs = needs
            self._reading.wanted.set()
            self._detailing.wanted.set()

    async def _publish(self) -> None:
        """Publish what is known of the engine and of the keys by now."""
        async with self._publishing:
            state, keys = self._state, self._keys
            if state is None or state.snapshot is None or keys.asked_at == _NEVER:
                return  # nothing yet that may be believed
            if not self._version and not self._detailing.failures and _lacks_details(state.moments, keys):
                return
            moments = replace(state.moments, store_asked_at=keys.asked_at, keys_at=keys.read_at)
            snapshot = as_recorded(state.snapshot, keys.records)
            first = not self._version
            try:
                self._version = await in_thread(partial(self._writer.publish, snapshot, moments))
            except OSError as error:
                raise UserError(
                    f"[inventory] directory: {self._directory}: cannot publish there: {error.strerror}"
                ) from None
            self._moments = moments
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
        """Answer all who wait after one turn, look and reading that began late enough for each of them."""
        while not self._holds(question):
            if (error := self._hindrance(question)) is not None:
                return Reply(self._version, error)
            if question.whole and self._reconciliation.demand(question.not_before):
                self._reading.wanted.set()
            self._following.want(question.not_before)
            self._looking.want(question.not_before)
            async with self._changed:
                await self._changed.wait()
        return Reply(self._version)

    def _holds(self, question: Refresh) -> bool:
        moments = self._moments
        at = min(moments.as_of, moments.whole_at) if question.whole else moments.as_of
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
