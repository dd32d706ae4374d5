"""Ends a daemon on SIGTERM and SIGINT, between two of its actions."""

from __future__ import annotations

import os
import select
import signal
from types import FrameType


class Stop:
    """Notices that the process was asked to end; it is for the main thread alone.

    An event of `threading` will not do: its lock is not reentrant, and a signal that arrives while the main
    thread is about to wait for the event would wait for itself for ever.
    """

    def __init__(self) -> None:
        self.requested = False
        self._awake, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def sleep(self, seconds: float) -> bool:
        """Sleep so long, or until asked to end; whether that is asked."""
        select.select([self._awake], [], [], max(0.0, seconds))
        return self.requested

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self.requested:
            self.requested = True
            os.write(self._wake, b"!")
