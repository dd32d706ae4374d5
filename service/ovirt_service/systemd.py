"""Notifies systemd that a process is ready, alive or stopping, as sd_notify(3) does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable


class Notifier:
    """Speaks to the socket that systemd names; silent where there is none."""

    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        microseconds = os.environ.get("WATCHDOG_USEC", "")
        watched = microseconds.isdigit() and os.environ.get("WATCHDOG_PID", "") in {"", str(os.getpid())}
        #: Seconds between signs of life: a third of what systemd waits for. None when it does not watch.
        self._interval = int(microseconds) / 3e6 if watched else None
        self._is_ready = False

    def ready(self) -> None:
        """Say so once, however often it is called."""
        if not self._is_ready:
            self._is_ready = True
            self._send("READY=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    async def keep_alive(self, hangs: Callable[[], bool] = lambda: False) -> None:
        """Notify systemd that the event loop turns, for as long as it does and nothing else hangs."""
        while self._interval is not None:
            self._report_unless(hangs)
            await asyncio.sleep(self._interval)

    def keep_alive_concurrently(self, hangs: Callable[[], bool]) -> None:
        """The same for a loop without asyncio, from a thread that ends with the process."""
        if self._interval is not None:
            threading.Thread(
                target=self._keep, args=(self._interval, hangs), name="watchdog", daemon=True
            ).start()

    def _keep(self, interval: float, hangs: Callable[[], bool]) -> None:
        while True:
            self._report_unless(hangs)
            time.sleep(interval)

    def _report_unless(self, hangs: Callable[[], bool]) -> None:
        if not hangs():
            self._send("WATCHDOG=1")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        # systemd judges by what reaches it; nobody else can be notified of an error here.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifying, contextlib.suppress(OSError):
            notifying.sendto(state.encode(), address)
