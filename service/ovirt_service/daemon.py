"""A daemon: it reports that it gets on, tries again, collects garbage, and ends between two actions."""

import contextlib
import gc
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

#: So long systemd is waited for, where it must hear something.
_PATIENCE_SECONDS = 5.0


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
        if not self._is_ready:
            self._is_ready = True
            self._send("READY=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    async def keep_alive(self, hangs: Callable[[], bool] = lambda: False) -> None:
        """Notify systemd that the event loop turns, for as long as it does and nothing else hangs."""
        import asyncio  # who awaits this has it; it takes long to load for those who do not

        while self._interval is not None:
            self._report_unless(hangs)
            await asyncio.sleep(self._interval)

    def keep_alive_concurrently(self, hangs: Callable[[], bool]) -> None:
        """The same for a loop without asyncio, from a thread that ends with the process."""
        interval = self._interval
        if interval is None:
            return

        def report_for_ever() -> None:
            while True:
                self._report_unless(hangs)
                time.sleep(interval)

        threading.Thread(target=report_for_ever, name="watchdog", daemon=True).start()

    def _report_unless(self, hangs: Callable[[], bool]) -> None:
        if not hangs():
            # Where systemd does not listen now, others wait for it already.
            self._send("WATCHDOG=1", patience_seconds=0.0)

    def _send(self, state: str, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        # systemd judges by what reaches it; none else can be notified of an error here.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifying, contextlib.suppress(OSError):
            notifying.settimeout(patience_seconds)
            notifying.sendto(state.encode(), address)


class Progress:
    """When a loop last got on; it marks that itself, and the watchdog asks from another thread or task."""

    def __init__(self, longest_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Without a mark for longer than this, the loop hangs."""
        self._longest_seconds = longest_seconds
        self._clock = clock
        self._marked = clock()

    def mark(self) -> None:
        self._marked = self._clock()

    @property
    def hangs(self) -> bool:
        return self._clock() - self._marked > self._longest_seconds


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


#: This many doublings reach any longest pause; many more than a thousand would be too much for a float.
_MOST_DOUBLINGS = 60


@dataclass(frozen=True, slots=True)
class BackOff:
    """The pauses after failures in a row, each twice as long as the last, of a loop that has other work too.

    What is only to be called again until it succeeds is a library's work.
    """

    first_seconds: float
    longest_seconds: float

    def pause_after(self, failures: int) -> float:
        """Seconds to wait after this many failures in a row; none after none."""
        if failures < 1:
            return 0.0
        doublings = min(failures - 1, _MOST_DOUBLINGS)
        return min(self.first_seconds * 2.0**doublings, self.longest_seconds)


#: Little garbage comes together: nearly everything is freed when it is no longer used, without a collection.
_INTERVAL_SECONDS = 30.0


class Garbage:
    """Collected while no caller waits; what was there at the last collection is looked at by the next alone.

    All threads stand still meanwhile, for 0.1 s with ten thousand VMs. Python would do so in the middle of an
    answer, or of a change that a reader waits for.
    """

    def __init__(self, *, alone: bool = False) -> None:
        """With `alone`, Python collects nothing by itself from now on: not even while much is read."""
        if alone:
            gc.disable()
        self._collected_at = float("-inf")

    def collect(self, now: float) -> None:
        """Collect it if that is due, by a clock that is never set; for one thread."""
        if now >= self._collected_at + _INTERVAL_SECONDS:
            self._collected_at = now
            gc.unfreeze()
            gc.collect()
            gc.freeze()
