"""What the service asks again and again: when it was last asked, what became of it, when to ask again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from ovirt_placement.inventory.published.publication import now
from ovirt_service.back_off import BackOff
from ovirt_service.exhaustion import guarded
from ovirt_service.threads import BackgroundThread

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
            done = partial(result.set_result, guarded(work))
        except Exception as error:  # raised in the loop
            done = partial(result.set_exception, error)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, done)

    BackgroundThread(target=run).start()
    return await result
