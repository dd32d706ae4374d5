"""The time between a worker's fork and its greeting: it imports what cannot be shared, and may fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .worker import Worker

#: Takes a worker that is ready, or what kept it from becoming so.
Started = Callable[[Worker, str | None], None]


class Starting:
    """The user of a worker that is not ready yet. `started` is called once, within `seconds`."""

    def __init__(self, worker: Worker, seconds: float, started: Started) -> None:
        self._worker = worker
        self._started = started
        self._timer = asyncio.get_running_loop().call_later(
            seconds, self._finish, f"it was not ready within {seconds:g} s"
        )

    def readable(self) -> None:
        try:
            greeting = self._worker.connection.recv(4096)
        except OSError:
            greeting = b""
        self._finish(None if greeting else "it ended before it was ready")

    def ended(self) -> None:
        self._finish("it ended before it was ready")

    def _finish(self, trouble: str | None) -> None:
        self._timer.cancel()
        self._started(self._worker, trouble)
