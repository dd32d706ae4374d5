"""What is measured of the proxy in one window of the soak, and whether it stays flat over all of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

HEADERS = (
    *("calls", "calls/s", "p50 ms", "p99 ms", "longest ms", "proxy MiB", "workers MiB", "descriptors"),
    *("processes", "failures", "lost"),
)

#: What the later half may have more than the earlier one: of memory, descriptors, and the 99th percentile.
_MORE_MEMORY = 1.15
_MORE_DESCRIPTORS = 16
_SLOWER = 2.0


@dataclass(frozen=True)
class Window:
    """The calls of one window and what the proxy held at its end. Times in seconds, memory in MiB."""

    calls: int
    seconds: float
    times: Sequence[float]
    proxy_mib: float
    workers_mib: float
    descriptors: int
    processes: int
    #: Answers in which a unit failed, as they do while there is no engine; and calls without an answer.
    failures: int
    lost: int

    def quantile(self, share: float) -> float:
        ordered = sorted(self.times) or [0.0]
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def cells(self) -> tuple[str, ...]:
        return (
            *(f"{self.calls:,}", f"{len(self.times) / self.seconds:.0f}"),
            *(f"{self.quantile(share) * 1e3:.1f}" for share in (0.5, 0.99, 1.0)),
            *(f"{self.proxy_mib:.1f}", f"{self.workers_mib:.0f}", str(self.descriptors)),
            *(str(self.processes), str(self.failures), str(self.lost)),
        )

    def line(self) -> str:
        return ", ".join(f"{name} {cell}" for name, cell in zip(HEADERS, self.cells(), strict=True))


def held(proxy: psutil.Process) -> tuple[float, float, int, int]:
    """MiB of the proxy, MiB of all its workers, its descriptors, and how many processes it has."""
    workers = 0
    children = proxy.children(recursive=True)
    for child in children:
        try:
            workers += child.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return proxy.memory_info().rss / 2**20, workers / 2**20, proxy.num_fds(), len(children)


def verdict(windows: Sequence[Window]) -> list[str]:
    """What is not as it should be: sentences. The first quarter is for warming up."""
    found = [f"{sum(each.lost for each in windows)} calls were lost"] if any(w.lost for w in windows) else []
    settled = windows[len(windows) // 4 :]
    if len(settled) < 4:
        return found
    middle = len(settled) // 2
    before, after = settled[:middle], settled[middle:]

    def grew(of: str, most: float, plus: float = 0.0) -> None:
        early = statistics.median(getattr(each, of) for each in before)
        late = statistics.median(getattr(each, of) for each in after)
        if late > early * most + plus:
            found.append(f"{of} grew from {early:.1f} to {late:.1f}")

    grew("proxy_mib", _MORE_MEMORY)
    grew("workers_mib", _MORE_MEMORY)
    grew("descriptors", 1.0, _MORE_DESCRIPTORS)
    slow = [statistics.median(each.quantile(0.99) for each in half) for half in (before, after)]
    if slow[1] > slow[0] * _SLOWER:
        found.append(f"the 99th percentile grew from {slow[0] * 1e3:.1f} to {slow[1] * 1e3:.1f} ms")
    return found
