"""Asks the engine again and again, in threads; a failure is reported once, until it answers again."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple, TypeVar

from prometheus_client import Counter

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineAway, EngineConnection
from ovirt_placement.inventory.publication import now
from ovirt_placement.inventory.service.metrics import CountedConnection
from ovirt_service.daemon import BackOff, Notifier
from ovirt_service.errors import UserError
from ovirt_service.process import BackgroundThread, end_if_exhausted
from ovirt_service.repetition import Said

#: However many ask for it, an engine that is away is not asked more often than this.
_SHORTEST_PAUSE_SECONDS = 1.0
#: By itself it is asked again after 1 s, 2 s, 4 s ... and at least so often.
LONGEST_PAUSE_SECONDS = 10.0
_BACK_OFF = BackOff(_SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)

_Result = TypeVar("_Result")


class Attempts:
    """One kind of request; made within the loop of asyncio that it is for."""

    def __init__(self) -> None:
        self.began = float("-inf")
        self.error: str | None = None
        self.failures = 0
        self.wanted = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def begin(self) -> float:
        self.wanted.clear()
        self.began, self.error = now(), None
        return self.began

    def want(self, not_before: float) -> None:
        """Let the next one begin at once, unless the last began at this moment or later."""
        if self.began < not_before:
            self.wanted.set()

    def want_from_any_thread(self) -> None:
        """Let the next one begin at once, whenever the last began."""
        with suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(self.wanted.set)

    async def pause(self, longer: float) -> None:
        """Wait so long, or for a reader who needs it now; after a failure, longer and longer."""
        if self.failures:
            await asyncio.sleep(_SHORTEST_PAUSE_SECONDS)
            longer = _BACK_OFF.pause_after(self.failures) - _SHORTEST_PAUSE_SECONDS
        try:
            await asyncio.wait_for(self.wanted.wait(), max(0.0, longer))
        except TimeoutError:
            return


async def in_thread(work: Callable[[], _Result]) -> _Result:
    """Work in a thread that the end of the process does not wait for."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[_Result] = loop.create_future()

    def settle(done: Callable[[], None]) -> None:
        if not result.done():
            done()

    def run() -> None:
        try:
            done = partial(result.set_result, end_if_exhausted(work))
        except Exception as error:  # raised in the loop
            done = partial(result.set_exception, error)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, done)

    BackgroundThread(target=run).start()
    return await result


_log = logging.getLogger(__name__)


class Asking:
    """Asks for all loops of the service."""

    def __init__(self, notifier: Notifier, has_published: Callable[[], bool]) -> None:
        self._notifier = notifier
        self._has_published = has_published
        self._said = Said()
        self._failing: set[Attempts] = set()

    async def attempt(self, attempts: Attempts, ask: Callable[[], _Result]) -> _Result | None:
        """Ask in a thread; None if that failed. Raises what no waiting can heal at the start."""
        try:
            result = await in_thread(ask)
        except UserError as error:
            if not self._has_published() and not isinstance(error, EngineAway):
                raise
            self._failed(attempts, str(error))
        except Exception as error:
            _log.exception("reading the engine failed")
            self._failed(attempts, f"reading the engine failed: {error}")
        else:
            attempts.failures = 0
            self._failing.discard(attempts)
            if not self._failing and self._said.is_over("engine"):
                _log.info("the engine answers again")
            return result
        return None

    def _failed(self, attempts: Attempts, text: str) -> None:
        if self._said.is_news("engine"):
            _log.warning("%s; asking again until it answers", text)
        attempts.error = text
        attempts.failures += 1
        self._failing.add(attempts)
        self._notifier.ready()  # it serves and tries: more cannot be expected of it now


#: For log-outs, all at once; an engine that hangs forgets the sessions by itself.
_LAST_SECONDS = 1.5


class Connections(NamedTuple):
    #: Follows the events.
    feed: EngineConnection
    #: Makes the larger readings.
    bulk: EngineConnection
    #: Reads details of VMs, which take long.
    slow: EngineConnection


@contextmanager
def connections(settings: EngineSettings, requests: Counter) -> Iterator[Connections]:
    """Give the connections, and log out at the end, unless the engine keeps us waiting."""
    made = Connections(*(CountedConnection(settings, requests) for _ in Connections._fields))
    try:
        yield made
    finally:
        until = time.monotonic() + _LAST_SECONDS
        for connection in made:
            connection.end()
        closing = [BackgroundThread(target=connection.close) for connection in made]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(max(0.0, until - time.monotonic()))
