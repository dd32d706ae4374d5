"""The service that reads the engine for everyone on this machine, and publishes what it read."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from ovirt_placement.config import Config
from ovirt_placement.engine.connection import EngineAway, EngineConnection, connect
from ovirt_placement.engine.policies import PolicyReader
from ovirt_placement.engine.reader import read_snapshot
from ovirt_placement.errors import UserError
from ovirt_placement.inventory import publication
from ovirt_placement.inventory.conversation import Question, Refresh, Reply, address
from ovirt_placement.inventory.publication import FILE_NAME, SOCKET_NAME
from ovirt_placement.model import Snapshot

#: An engine that is away is asked again after 1 s, 2 s, 4 s ... and at least so often.
_LONGEST_PAUSE_SECONDS = 10.0
#: However many ask for it, an engine that is away is not asked more often than this.
_SHORTEST_PAUSE_SECONDS = 1.0

_log = logging.getLogger(__name__)


def run(config: Config, ready: Callable[[], None]) -> None:
    """Publish until SIGTERM or SIGINT; `ready` is called once the first snapshot is there.

    Raises `UserError` if the directory cannot be used, is another service's, or, before the first
    snapshot, if the engine cannot be talked to because of what a person must set right.
    """
    directory = config.inventory.directory
    owner = _claim(directory)
    try:
        with connect(config.engine) as connection:
            asyncio.run(_Service(config, connection, ready).serve())
    finally:
        for name in (FILE_NAME, SOCKET_NAME):
            (directory / name).unlink(missing_ok=True)
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


class _Service:
    def __init__(self, config: Config, connection: EngineConnection, ready: Callable[[], None]) -> None:
        self._directory = config.inventory.directory
        self._interval = config.inventory.interval_seconds
        self._connection = connection
        self._policies = PolicyReader()
        self._ready = ready
        self._version = 0
        self._payload = b""
        self._read_at = 0.0  # when the reading began that was published last
        self._attempt_at = 0.0  # when the last reading began, whatever came of it
        self._error: str | None = None
        self._failures = 0

    async def serve(self) -> None:
        """Read and answer until a signal comes, or until a first reading shows a wrong set-up."""
        self._changed = asyncio.Condition()
        self._wanted = asyncio.Event()
        try:
            with address(self._directory) as path:
                server = await asyncio.start_unix_server(self._answer, path)
        except OSError as error:
            raise UserError(f"[inventory] directory: {self._directory}: no socket there: {error}") from None
        (self._directory / SOCKET_NAME).chmod(0o660)
        reading = asyncio.create_task(self._keep_reading())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, reading.cancel)
        try:
            await reading
        except asyncio.CancelledError:
            _log.info("ends")
        finally:
            server.close()

    async def _keep_reading(self) -> None:
        while True:
            self._wanted.clear()
            self._attempt_at, self._error = publication.now(), None
            try:
                snapshot = await _in_thread(self._read)
            except EngineAway as error:
                await self._failed(str(error))
            except UserError as error:
                if not self._version:
                    raise
                await self._failed(str(error))
            except Exception as error:
                _log.exception("reading the engine failed")
                await self._failed(f"reading the engine failed: {error}")
            else:
                await self._publish(snapshot)
            await self._pause()

    def _read(self) -> Snapshot:
        return read_snapshot(self._connection, policies=self._policies)

    async def _pause(self) -> None:
        """Wait for the next turn, or for a reader who needs one now."""
        if self._failures:
            await asyncio.sleep(_SHORTEST_PAUSE_SECONDS)
            longer = min(2.0 ** (self._failures - 1), _LONGEST_PAUSE_SECONDS) - _SHORTEST_PAUSE_SECONDS
        else:
            longer = self._attempt_at + self._interval - publication.now()
        try:
            await asyncio.wait_for(self._wanted.wait(), max(0.0, longer))
        except TimeoutError:
            return

    async def _publish(self, snapshot: Snapshot) -> None:
        payload = msgspec.msgpack.encode(snapshot)
        first = not self._version
        if payload != self._payload:
            self._version = int(self._attempt_at * 1_000_000)
            self._payload = payload
        publication.write(self._directory, self._version, self._attempt_at, payload)
        self._read_at = self._attempt_at
        if self._failures:
            _log.info("the engine answers again")
        self._error, self._failures = None, 0
        if first:
            self._ready()
        await self._tell()

    async def _failed(self, text: str) -> None:
        if not self._failures:
            _log.warning("%s; asking again until it answers", text)
        self._error = text
        self._failures += 1
        await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            question: Question = msgspec.json.decode(await reader.readline(), type=Question)
            if isinstance(question, Refresh):
                reply = await self._refreshed(question.not_before)
            else:
                reply = await self._woken(question.version)
            writer.write(msgspec.json.encode(reply) + b"\n")
            await writer.drain()
        except (OSError, ValueError):
            _log.debug("a reader went away, or spoke another language")
        finally:
            writer.close()

    async def _refreshed(self, not_before: float) -> Reply:
        """Answer all who wait after one reading that began late enough for each of them."""
        while self._read_at < not_before:
            if self._error is not None and self._attempt_at >= not_before:
                return Reply(self._version, self._error)
            if self._attempt_at < not_before:
                self._wanted.set()
            async with self._changed:
                await self._changed.wait()
        return Reply(self._version)

    async def _woken(self, version: int) -> Reply:
        async with self._changed:
            await self._changed.wait_for(lambda: self._version not in (0, version))
        return Reply(self._version)


async def _in_thread(read: Callable[[], Snapshot]) -> Snapshot:
    """Run the reading in a thread that the end of the process does not wait for."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Snapshot] = loop.create_future()

    def settle(snapshot: Snapshot | None, error: Exception | None) -> None:
        if result.cancelled():
            return
        if snapshot is not None:
            result.set_result(snapshot)
        else:
            result.set_exception(error or AssertionError("neither result nor error"))

    def work() -> None:
        snapshot, error = None, None
        try:
            snapshot = read()
        except Exception as caught:  # told to the loop
            error = caught
        loop.call_soon_threadsafe(settle, snapshot, error)

    threading.Thread(target=work, daemon=True).start()
    return await result
