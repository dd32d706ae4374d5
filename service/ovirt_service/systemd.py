"""Tells systemd that the proxy is ready, alive or stopping."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket


class Notifier:
    """Speaks to the socket that systemd names; silent where there is none."""

    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        microseconds = os.environ.get("WATCHDOG_USEC", "")
        watched = microseconds.isdigit() and os.environ.get("WATCHDOG_PID", "") in {"", str(os.getpid())}
        #: Seconds between signs of life: a third of what systemd waits for. None when it does not watch.
        self._interval = int(microseconds) / 3e6 if watched else None

    def ready(self) -> None:
        self._send("READY=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    async def keep_alive(self) -> None:
        """Tell systemd that the event loop turns, for as long as it does."""
        while self._interval is not None:
            self._send("WATCHDOG=1")
            await asyncio.sleep(self._interval)

    def _send(self, state: str) -> None:
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        # systemd judges by what reaches it; of an error here there is nobody else to tell.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifying, contextlib.suppress(OSError):
            notifying.sendto(state.encode(), address)
