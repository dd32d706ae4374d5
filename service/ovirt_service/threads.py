"""Threads that begin, or end the process: Python waits for ever for one that has no memory to begin."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

from ovirt_service.exhaustion import end, guarded

#: A thread that has not taken its first step by then will not: even a busy machine gives it a turn before.
_LOOKS: Final = 30
#: A process that is stopped, and woken late, has missed one look alone, as its thread had no turn either.
_LOOK_SECONDS: Final = 1.0


class _Begun(threading.Event):
    """What `Thread.start` waits for, without a limit of its own."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; without a time of the caller's, end the process if it is not in ours."""
        if timeout is not None:
            return super().wait(timeout)
        if not any(super(_Begun, self).wait(_LOOK_SECONDS) for _ in range(_LOOKS)):
            end()
        return True


class BackgroundThread(threading.Thread):
    """Ends with the process; ends the process if the system has no thread for it, or no memory for its start.

    CPython (at least up to 3.13) creates the thread first, and lets it set up itself: if that fails, `start`
    does not learn of it.
    """

    def __init__(
        self, target: Callable[..., object], args: Iterable[Any] = (), name: str | None = None
    ) -> None:
        """Take what `threading.Thread` takes."""
        super().__init__(target=target, args=args, name=name, daemon=True)
        self._started = _Begun()

    def start(self) -> None:
        """Begin; the process ends if that exhausts it."""
        guarded(super().start)
