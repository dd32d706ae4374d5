"""systemd's end of sd_notify: a socket, and what was reported there."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PATIENCE_SECONDS = 30.0


class Systemd:
    """Listens as systemd does to the one process that it has started."""

    def __init__(self, listening: socket.socket, path: Path) -> None:
        self._socket = listening
        self._path = path

    def environment(self, watchdog_seconds: float | None = None) -> dict[str, str]:
        """What the process finds in its environment."""
        reported = {"NOTIFY_SOCKET": str(self._path)}
        if watchdog_seconds is not None:
            reported["WATCHDOG_USEC"] = str(round(watchdog_seconds * 1e6))
        return reported

    def hear(self) -> str:
        """The next thing that is reported."""
        return self._socket.recv(100).decode()

    def hear_until(self, awaited: str, times: int = 1) -> list[str]:
        """All that is reported until this was reported so often."""
        reported: list[str] = []
        while reported.count(awaited) < times:
            reported.append(self.hear())
        return reported

    def count(self, seconds: float) -> int:
        """How often something is reported within this many seconds; what was reported before is forgotten."""
        self._socket.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                self._socket.recv(100)
        count, until = 0, time.monotonic() + seconds
        with suppress(TimeoutError):
            while True:
                self._socket.settimeout(max(0.001, until - time.monotonic()))
                self._socket.recv(100)
                count += 1
        self._socket.settimeout(_PATIENCE_SECONDS)
        return count


@contextmanager
def systemd(folder: Path) -> Iterator[Systemd]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        path = folder / "notify"
        listening.bind(str(path))
        listening.settimeout(_PATIENCE_SECONDS)
        yield Systemd(listening, path)
