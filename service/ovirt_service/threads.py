"""Threads that begin, or end the process: Python waits for ever for one that has no memory to begin."""

from __future__ import annotations

import threading
from typing import Final

from ovirt_service.exhaustion import end, guarded

#: A thread that has not taken its first step by then will not: even a busy machine gives it a turn before.
_BEGIN_SECONDS: Final = 30.0


class _Begun(threading.Event):
    """What `Thread.start` waits for, without a limit of its own."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; end the process if it is not in time."""
        if not super().wait(_BEGIN_SECONDS if timeout is None else timeout):
            end()
        return True


class BackgroundThread(threading.Thread):
    """Ends with the process; ends the process if the system has no thread for it, or no memory for its start.

    CPython (at least up to 3.13) creates the thread first, and lets it set up itself: if that fails, `start`
    does not learn of it.
    """

    def __init__(self, **named: object) -> None:
        """Take what `threading.Thread` takes, by name."""
        super().__init__(daemon=True, **named)  # type: ignore[arg-type]
        self._started = _Begun()

    def start(self) -> None:
        """Begin; the process ends if that exhausts it."""
        guarded(super().start)
