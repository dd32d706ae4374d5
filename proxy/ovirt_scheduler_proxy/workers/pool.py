"""The workers of one plugin folder: lends them to calls, watches them, and replaces the ones that end."""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from .lending import WORKERS_PER_UNIT, Lending, Ticket
from .nursery import Event, Nursery
from .outcome import Cause, Failure
from .worker import Worker

log = logging.getLogger(__name__)

#: Seconds between looks at the workers' memory.
_WATCH_INTERVAL = 0.5
_FIRST_BACK_OFF = 0.1
_LONGEST_BACK_OFF = 10.0


@dataclass(frozen=True)
class PoolSettings:
    """How the workers of one folder are run."""

    folder: Path
    python: str
    #: Workers kept ready.
    warm: int
    #: Never more workers than this.
    most: int
    #: Bytes that a worker may take beyond what it has after loading.
    memory_limit: int
    #: A worker is replaced after so many calls; 0 means never.
    calls_per_worker: int
    #: Seconds that the import of one module may take.
    load_timeout: float
    log_level: int


class Pool:
    """Thread-safe. `modules` holds what the folder's modules reported when they were loaded."""

    def __init__(self, settings: PoolSettings) -> None:
        self.settings = settings
        self.modules: list[dict[str, Any]] = []
        #: Workers that ended without our asking, since the start.
        self.restarts = 0
        self._lock = threading.Lock()
        self._lending = Lending()
        #: Every worker whose end was not yet reported, and those of them that are ready and not discarded.
        self._known: dict[int, Worker] = {}
        self._workers: dict[int, Worker] = {}
        #: Workers that are asked for, and by the descriptor of their connection those not yet ready.
        self._coming = 0
        self._starting: dict[int, Worker] = {}
        self._failed_starts = 0
        self._not_before = 0.0
        self._closing = False
        self._warm = threading.Event()
        self._epoll = select.epoll()
        self._stop = os.eventfd(0)
        self._epoll.register(self._stop, select.EPOLLIN)
        self._nursery = self._start_nursery()
        units = sum(len(unit["kinds"]) for module in self.modules for unit in module["units"])
        self._most = min(settings.most, max(settings.warm, WORKERS_PER_UNIT * units))
        self._keeper = threading.Thread(target=self._keep, name=f"keeper of {settings.folder}", daemon=True)
        self._keeper.start()

    def request(self, unit: str, wake: int) -> Ticket:
        """Ask for a worker to run the unit; the ticket may be granted at once, else `wake` is written to."""
        with self._lock:
            ticket = self._lending.request(unit, wake)
            if ticket.worker is None:
                self._fill_up()
        return ticket

    def withdraw(self, ticket: Ticket) -> None:
        """Give up a wish, or the worker that was granted in the meantime."""
        with self._lock:
            self._lending.withdraw(ticket)
            self._return(ticket, ticket.worker)

    def give_back(self, ticket: Ticket, retire: bool = False) -> None:
        """The call is over and the worker is well, but for what `retire` says."""
        worker = ticket.worker
        if worker is None:
            return
        worker.calls += 1
        limit = self.settings.calls_per_worker
        if retire or (limit and worker.calls >= limit):
            self.discard(ticket)
        else:
            with self._lock:
                self._return(ticket, worker)

    def discard(self, ticket: Ticket) -> None:
        """The worker is not to be used again: kill it and start another at once."""
        worker = ticket.worker
        if worker is None:
            return
        worker.kill()
        with self._lock:
            self._workers.pop(worker.pid, None)
            self._return(ticket, worker)
            self._fill_up()

    def wait_until_warm(self, timeout: float) -> bool:
        """Wait until the warm workers stand ready; False if they do not in time (seconds)."""
        with self._lock:
            self._fill_up()
        return self._warm.wait(timeout)

    def worker_pids(self) -> list[int]:
        with self._lock:
            return list(self._workers)

    @property
    def alive(self) -> bool:
        """Whether the thread that replaces workers runs."""
        return self._keeper.is_alive()

    def close(self) -> None:
        """End all workers and wait until they are gone."""
        self._closing = True
        os.eventfd_write(self._stop, 1)
        self._keeper.join()
        self._nursery.close()
        self._epoll.close()
        os.close(self._stop)

    def _return(self, ticket: Ticket, worker: Worker | None) -> None:
        if worker is not None:
            ticket.worker = None
            usable = self._workers.get(worker.pid) is worker
            self._lending.take_back(ticket.unit, worker if usable else None)

    def _fill_up(self) -> None:
        """Start as many workers as are missing, unless they keep failing to start. The lock is held."""
        if self._closing or time.monotonic() < self._not_before:
            return
        standing = len(self._workers)
        target = min(max(self.settings.warm, standing + self._lending.wanted()), self._most)
        for _ in range(target - standing - self._coming):
            self._coming += 1
            self._nursery.spawn()

    def _start_failed(self, reason: str) -> None:
        """Try again later, and each time later. The lock is held."""
        delay = min(_FIRST_BACK_OFF * 2**self._failed_starts, _LONGEST_BACK_OFF)
        self._failed_starts += 1
        self._coming -= 1
        self._not_before = time.monotonic() + delay
        log.error("no new worker for %s: %s; next try in %.1f s", self.settings.folder, reason, delay)

    def _start_nursery(self) -> Nursery:
        """Start the process that loads the folder, and wait until it has."""
        settings = self.settings
        nursery = Nursery(
            settings.python,
            {
                "folder": str(settings.folder),
                "load_timeout": settings.load_timeout,
                "memory_limit": settings.memory_limit,
                "log_level": settings.log_level,
            },
        )
        modules: list[dict[str, Any]] = []
        while (event := nursery.receive()) is not None:
            if event.name == "loaded":
                self.modules = modules
                self._epoll.register(nursery.control, select.EPOLLIN)
                return nursery
            modules.append(event.facts)
        nursery.close()
        raise UserError(
            f"plugin folder {settings.folder}: its Python interpreter {settings.python} ended while it loaded"
            f" the plugins (exit status {nursery.process.returncode}); it must be a Python 3.9 or later"
        )

    def _keep(self) -> None:
        """Take what the zygote and new workers tell; between that, look after memory and missing workers."""
        watch_at = time.monotonic() + _WATCH_INTERVAL
        while not self._closing:
            for descriptor, _ in self._epoll.poll(max(0.0, watch_at - time.monotonic())):
                if descriptor in self._starting:
                    self._became_ready(self._starting.pop(descriptor))
                elif descriptor != self._stop:
                    self._take(self._nursery.receive())
            if time.monotonic() >= watch_at:
                self._watch_memory()
                with self._lock:
                    self._fill_up()
                watch_at = time.monotonic() + _WATCH_INTERVAL

    def _take(self, event: Event | None) -> None:
        if event is None:
            self._replace_nursery()
        elif event.worker is not None:
            connection = event.worker.connection
            self._known[event.worker.pid] = event.worker
            self._starting[connection.fileno()] = event.worker
            self._epoll.register(connection, select.EPOLLIN | select.EPOLLONESHOT)
        elif event.name == "ended":
            self._ended(event.facts["pid"], event.facts["status"])
        elif event.name == "refused":
            with self._lock:
                self._start_failed(event.facts["error"])

    def _became_ready(self, worker: Worker) -> None:
        self._epoll.unregister(worker.connection)
        try:
            greeting = worker.connection.recv(4096)
        except OSError:
            greeting = b""
        if not greeting:
            worker.kill()
            with self._lock:
                self._start_failed("it ended before it was ready")
            return
        worker.first_size = worker.size()
        with self._lock:
            self._coming -= 1
            self._failed_starts = 0
            self._workers[worker.pid] = worker
            self._lending.add(worker)
            if len(self._workers) >= self.settings.warm:
                self._warm.set()

    def _ended(self, pid: int, status: int) -> None:
        worker = self._known.pop(pid, None)
        if worker is None:
            return
        worker.status = status
        with self._lock:
            if self._workers.pop(pid, None) is not None:
                self.restarts += 1
                self._lending.remove(worker)
                self._fill_up()
        worker.ended.set()

    def _watch_memory(self) -> None:
        """End the workers that grew too large: idle ones at half the limit already, before a call is hurt."""
        limit = self.settings.memory_limit
        with self._lock:
            workers = list(self._workers.values())
        for worker in workers:
            grown = worker.size() - worker.first_size
            if grown > limit // 2:
                with self._lock:
                    idle = self._lending.remove(worker)
                    if idle:
                        del self._workers[worker.pid]
                if not idle and grown > limit:
                    worker.verdict = Failure(Cause.MEMORY, "outgrew its memory limit")
                if idle or grown > limit:
                    log.warning(
                        "worker %d of %s grew by %d MiB", worker.pid, self.settings.folder, grown >> 20
                    )
                    worker.kill()

    def _replace_nursery(self) -> None:
        """The zygote has ended, and the kernel has ended its workers with it: start all anew."""
        log.error(
            "the process that starts the workers of %s has ended; starting another", self.settings.folder
        )
        self._epoll.unregister(self._nursery.control)
        self._nursery.close()
        with self._lock:
            for worker in self._workers.values():
                self._lending.remove(worker)
            self._workers.clear()
            self._starting.clear()
            self._coming = 0
        for worker in self._known.values():
            worker.kill()
            worker.ended.set()
        self._known.clear()
        while not self._closing:
            try:
                self._nursery = self._start_nursery()
            except UserError as error:
                log.error("%s", error)
                time.sleep(1)
            else:
                break
        with self._lock:
            self._fill_up()
