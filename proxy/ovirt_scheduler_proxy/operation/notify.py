"""Tells systemd that the proxy is ready, alive, reloading or stopping."""

from __future__ import annotations

import contextlib
import os
import socket
import time


class Notifier:
    """Speaks to the socket that systemd names; silent where there is none."""

    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        microseconds = os.environ.get("WATCHDOG_USEC", "")
        self._watched = microseconds.isdigit() and os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(
            os.getpid()
        )
        #: Seconds between signs of life: a third of what systemd waits for. None when it does not watch.
        self.interval = int(microseconds) / 3e6 if self._watched else None

    def ready(self) -> None:
        self._send("READY=1")

    def reloading(self) -> None:
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def alive(self) -> None:
        if self._watched:
            self._send("WATCHDOG=1")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        # systemd judges by what reaches it; of an error here there is nobody else to tell.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifying, contextlib.suppress(OSError):
            notifying.sendto(state.encode(), address)
