"""What processes hold: memory, descriptors, threads; and which of them have ended and nobody noticed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil

#: A worker that was killed is a zombie until its parent looks.
_REAPED_SECONDS = 5.0


@dataclass
class Held:
    """What processes of one kind can be satisfied together; memory in MiB, and that of the largest."""

    processes: int = 0
    mib: float = 0.0
    largest_mib: float = 0.0
    descriptors: int = 0
    threads: int = 0

    @property
    def mean_mib(self) -> float:
        return self.mib / max(1, self.processes)

    def add(self, process: psutil.Process) -> None:
        with process.oneshot():
            mib, descriptors, threads = (
                process.memory_info().rss / 2**20,
                process.num_fds(),
                process.num_threads(),
            )
        self.processes += 1
        self.mib += mib
        self.largest_mib = max(self.largest_mib, mib)
        self.descriptors += descriptors
        self.threads += threads


@dataclass
class Holdings:
    """What the proxy and all that belongs to it hold, and the inventory."""

    proxy: Held = field(default_factory=Held)
    zygotes: Held = field(default_factory=Held)
    workers: Held = field(default_factory=Held)
    inventory: Held = field(default_factory=Held)
    zombies: int = 0
    #: Seconds of the processor that the proxy itself has taken since its start.
    proxy_cpu: float = 0.0

    @property
    def descriptors(self) -> int:
        """Those of workers, which come and go, are not among them."""
        return sum(held.descriptors for held in self._lasting)

    @property
    def threads(self) -> int:
        return sum(held.threads for held in self._lasting)

    @property
    def _lasting(self) -> Sequence[Held]:
        return self.proxy, self.zygotes, self.inventory


def measure(proxy: psutil.Process, inventory: psutil.Process) -> Holdings:
    found = Holdings(zombies=_zombies(proxy))
    times = proxy.cpu_times()
    found.proxy_cpu = times.user + times.system
    found.proxy.add(proxy)
    found.inventory.add(inventory)
    for zygote in proxy.children():
        found.zygotes.add(zygote)
        for worker in zygote.children():
            try:
                found.workers.add(worker)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue  # it was killed just now
    return found


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
