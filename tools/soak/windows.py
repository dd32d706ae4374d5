"""One window of the soak: what processes hold, and whether that stays flat over all windows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

from .asking import Tally

#: This many times as much as in the first half may be held in the second; and descriptors and threads more.
_MORE_MEMORY = 1.15
_MORE_COUNTED = 16
#: A busy machine makes calls slow, but not the proxy's own work for each of them.
_MORE_WORK = 1.3
_SLOWER = 3.0
#: Sentences of each kind that are shown.
_SHOWN = 5
#: A worker that was killed is a zombie until its parent looks.
_REAPED_SECONDS = 5.0


@dataclass(frozen=True)
class Window:
    """The calls of one window, and what was held at its end; memory in MiB."""

    #: Since the start.
    calls: int
    seconds: float
    tally: Tally
    #: Seconds of the processor that the proxy itself has taken since its start.
    proxy_cpu: float
    proxy_mib: float
    zygotes_mib: float
    inventory_mib: float
    #: Of all workers, in the mean.
    worker_mib: float
    #: Of what lasts: those of workers, which come and go, are not among them.
    descriptors: int
    threads: int
    #: How many processes have ended, and nobody noticed.
    zombies: int

    @property
    def p99(self) -> float:
        ordered = sorted(self.tally.times) or [0.0]
        return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]

    def row(self) -> dict[str, str]:
        tally = self.tally
        return {
            "calls": f"{self.calls:,}",
            "calls/s": f"{len(tally.times) / self.seconds:.0f}",
            "p99 ms": f"{self.p99 * 1e3:.1f}",
            "proxy MiB": f"{self.proxy_mib:.1f}",
            "zygotes MiB": f"{self.zygotes_mib:.1f}",
            "inventory MiB": f"{self.inventory_mib:.1f}",
            "a worker MiB": f"{self.worker_mib:.1f}",
            "descriptors": str(self.descriptors),
            "threads": str(self.threads),
            "zombies": str(self.zombies),
            "failed": str(tally.failed),
            "wrong": str(len(tally.wrong)),
            "lost": str(len(tally.lost)),
        }


def measure(
    calls: int, seconds: float, tally: Tally, proxy: psutil.Process, inventory: psutil.Process
) -> Window:
    zombies, zygotes = _zombies(proxy), proxy.children()
    lasting, workers = [proxy, inventory, *zygotes], []
    for worker in (each for zygote in zygotes for each in zygote.children()):
        try:
            workers.append(_mib(worker))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it was killed just now
    times = proxy.cpu_times()
    return Window(
        calls,
        seconds,
        tally,
        times.user + times.system,
        _mib(proxy),
        sum(map(_mib, zygotes)),
        _mib(inventory),
        sum(workers) / max(1, len(workers)),
        sum(each.num_fds() for each in lasting),
        sum(each.num_threads() for each in lasting),
        zombies,
    )


def _mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss / 2**20)


def _zombies(proxy: psutil.Process) -> int:
    """How many processes have ended and stay unnoticed."""
    until = time.monotonic() + _REAPED_SECONDS
    dead = _ended(proxy)
    while dead and time.monotonic() < until:
        time.sleep(0.1)
        dead &= _ended(proxy)
    return len(dead)


def _ended(proxy: psutil.Process) -> set[psutil.Process]:
    found = set()
    for process in proxy.children(recursive=True):
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                found.add(process)
        except psutil.NoSuchProcess:
            continue
    return found


def verdict(windows: Sequence[Window]) -> list[str]:
    """What is not as it should be: sentences."""
    found = []
    for what, heard in (
        ("answers were wrong", [text for window in windows for text in window.tally.wrong]),
        ("calls were lost", [text for window in windows for text in window.tally.lost]),
    ):
        if heard:
            found += [f"{len(heard)} {what}:", *(f"  {text}" for text in heard[:_SHOWN])]
    if failed := sum(window.tally.failed for window in windows):
        found.append(f"units failed in {failed} calls, which the log of the proxy explains")
    if windows[-1].zombies:
        found.append(f"{windows[-1].zombies} processes have ended, and nobody noticed")
    return [*found, *_growth(windows)]


def _growth(windows: Sequence[Window]) -> list[str]:
    """Compare the halves of what follows the first quarter, which is for warming up."""
    settled = windows[len(windows) // 4 :]
    if len(settled) < 4:
        return []
    middle = len(settled) // 2
    halves = settled[:middle], settled[middle:]
    found = []
    for name, measured, times, more in _LIMITS:
        early, late = (statistics.median(map(measured, half)) for half in halves)
        if late > early * times + more:
            found.append(f"{name} grew from {early:.1f} to {late:.1f}")
    early, late = (
        (half[-1].proxy_cpu - half[0].proxy_cpu) / max(1, half[-1].calls - half[0].calls) for half in halves
    )
    if late > early * _MORE_WORK:
        found.append(f"the proxy's work for a call (ms) grew from {early * 1e3:.1f} to {late * 1e3:.1f}")
    return found


#: What is compared: how often as much, and how much more, there may be.
_LIMITS: Sequence[tuple[str, Callable[[Window], float], float, float]] = (
    ("the proxy's memory (MiB)", lambda window: window.proxy_mib, _MORE_MEMORY, 0.0),
    ("the zygotes' memory (MiB)", lambda window: window.zygotes_mib, _MORE_MEMORY, 0.0),
    ("the workers' mean memory (MiB)", lambda window: window.worker_mib, _MORE_MEMORY, 0.0),
    ("the inventory's memory (MiB)", lambda window: window.inventory_mib, _MORE_MEMORY, 0.0),
    ("descriptors", lambda window: window.descriptors, 1.0, _MORE_COUNTED),
    ("threads", lambda window: window.threads, 1.0, _MORE_COUNTED),
    ("the 99th percentile (ms)", lambda window: window.p99 * 1e3, _SLOWER, 0.0),
)
