"""One window of the soak, and whether what it shows stays flat over all of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .clients import Tally
from .failures import Failures
from .measuring import Holdings

HEADERS = (
    *("calls", "calls/s", "p50 ms", "p99 ms", "longest ms", "proxy CPU ms"),
    *("proxy MiB", "zygotes MiB", "inventory MiB", "workers", "mean MiB", "largest MiB"),
    *("descriptors", "threads", "zombies", "failed", "units by cause", "unexplained", "wrong", "lost"),
)

#: This many times as much as in the first half may be held in the second; and descriptors and threads more.
_MORE_MEMORY = 1.15
_MORE_COUNTED = 16
#: A busy machine makes calls slow, but not the proxy's own work for each of them.
_MORE_WORK = 1.3
_SLOWER = 3.0
#: Sentences of each kind that are shown.
_SHOWN = 5


@dataclass(frozen=True)
class Window:
    """The calls of one window, and what was held at its end."""

    #: Since the start.
    calls: int
    seconds: float
    tally: Tally
    failures: Failures
    holdings: Holdings
    #: Seconds of the processor that the proxy itself took for each call.
    work: float

    def quantile(self, share: float) -> float:
        ordered = sorted(self.tally.times) or [0.0]
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def cells(self) -> tuple[str, ...]:
        held, tally = self.holdings, self.tally
        memory = held.proxy.mib, held.zygotes.mib, held.inventory.mib
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.failures.kinds.items()))
        return (
            *(f"{self.calls:,}", f"{len(tally.times) / self.seconds:.0f}"),
            *(f"{self.quantile(share) * 1e3:.1f}" for share in (0.5, 0.99, 1.0)),
            f"{self.work * 1e3:.2f}",
            *(f"{mib:.1f}" for mib in memory),
            *(str(held.workers.processes), f"{held.workers.mean_mib:.1f}", f"{held.workers.largest_mib:.1f}"),
            *(str(held.descriptors), str(held.threads), str(held.zombies), str(tally.failed), kinds or "-"),
            *(str(len(reported)) for reported in (self.failures.unexplained, tally.wrong, tally.lost)),
        )

    def line(self) -> str:
        return ", ".join(f"{name} {cell}" for name, cell in zip(HEADERS, self.cells(), strict=True))


def verdict(windows: Sequence[Window]) -> list[str]:
    """What is not as it should be: sentences."""
    return [*_faults(windows), *_growth(windows)]


def _faults(windows: Sequence[Window]) -> list[str]:
    found = []
    for what, seen in (
        ("answers were wrong", [text for window in windows for text in window.tally.wrong]),
        ("calls were lost", [text for window in windows for text in window.tally.lost]),
        (
            "failures are unexplained",
            [line for window in windows for line in window.failures.unexplained],
        ),
    ):
        if seen:
            found += [f"{len(seen)} {what}:", *(f"  {text}" for text in seen[:_SHOWN])]
    failed, reported = sum(w.tally.failed for w in windows), sum(w.failures.calls for w in windows)
    if failed != reported:
        found.append(f"units failed in {failed} calls, but the log reports {reported}")
    if windows[-1].holdings.zombies:
        found.append(f"{windows[-1].holdings.zombies} processes have ended, and nobody noticed")
    return found


def _growth(windows: Sequence[Window]) -> list[str]:
    """Compare the halves of what follows the first quarter, which is for warming up."""
    settled = windows[len(windows) // 4 :]
    if len(settled) < 4:
        return []
    middle = len(settled) // 2
    found = []
    for name, measured, times, more in _LIMITS:
        early, late = (
            statistics.median(map(measured, half)) for half in (settled[:middle], settled[middle:])
        )
        if late > early * times + more:
            found.append(f"{name} grew from {early:.1f} to {late:.1f}")
    return found


#: What is compared: how often as much, and how much more, there may be.
_LIMITS: Sequence[tuple[str, Callable[[Window], float], float, float]] = (
    ("the proxy's memory (MiB)", lambda window: window.holdings.proxy.mib, _MORE_MEMORY, 0.0),
    ("the zygotes' memory (MiB)", lambda window: window.holdings.zygotes.mib, _MORE_MEMORY, 0.0),
    ("the workers' mean memory (MiB)", lambda window: window.holdings.workers.mean_mib, _MORE_MEMORY, 0.0),
    ("the inventory's memory (MiB)", lambda window: window.holdings.inventory.mib, _MORE_MEMORY, 0.0),
    ("descriptors", lambda window: window.holdings.descriptors, 1.0, _MORE_COUNTED),
    ("threads", lambda window: window.holdings.threads, 1.0, _MORE_COUNTED),
    ("the proxy's work for a call (ms)", lambda window: window.work * 1e3, _MORE_WORK, 0.0),
    ("the 99th percentile (ms)", lambda window: window.quantile(0.99) * 1e3, _SLOWER, 0.0),
)
