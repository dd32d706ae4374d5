"""The workers of one plugin folder: who may use which next, and how many are kept ready."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from ovirt_scheduler_proxy.processes import Cause, Failure, Worker, ZygoteProcess, end_children
from ovirt_scheduler_proxy.settings import PluginFolder, Workers
from ovirt_scheduler_proxy.worker.answers import one_line
from ovirt_service.daemon import BackOff
from ovirt_service.errors import UserError

#: A unit holds its first worker and at most one more, so that a hanging unit leaves the others theirs.
WORKERS_PER_UNIT = 2


class Ticket(NamedTuple):
    """A wish for a worker. `granted` is called once, at once or later, unless the ticket is withdrawn."""

    unit: str
    granted: Callable[[Worker], None]


class Allocation:
    """Idle workers, waiting tickets, and how many workers each unit holds."""

    def __init__(self) -> None:
        self._idle: list[Worker] = []
        self._waiting: deque[Ticket] = deque()
        self._held: Counter[str] = Counter()

    def request(self, ticket: Ticket) -> bool:
        """Grant at once if possible, else queue: tickets are granted in order of arrival. Whether it was."""
        if self._idle and self._held[ticket.unit] < WORKERS_PER_UNIT:
            self._lend(ticket)
            return True
        self._waiting.append(ticket)
        return False

    def withdraw(self, ticket: Ticket) -> None:
        """Forget a ticket that was not granted."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)

    def take_back(self, unit: str, worker: Worker | None) -> None:
        """The unit holds one worker less; the worker is idle now, unless it is gone."""
        self._held[unit] -= 1
        if worker is not None:
            self._idle.append(worker)
        self._grant()

    def add(self, worker: Worker) -> None:
        self._idle.append(worker)
        self._grant()

    def remove(self, worker: Worker) -> bool:
        """Take a worker out of the idle ones; False when it is lent."""
        if worker in self._idle:
            self._idle.remove(worker)
            return True
        return False

    def wanted(self) -> int:
        """How many more workers would be put to use at once."""
        asked = Counter(ticket.unit for ticket in self._waiting)
        return sum(min(count, WORKERS_PER_UNIT - self._held[unit]) for unit, count in asked.items())

    def _grant(self) -> None:
        """Hand idle workers to the tickets that may have one."""
        if not self._waiting or not self._idle:
            return
        for ticket in list(self._waiting):
            if self._idle and self._held[ticket.unit] < WORKERS_PER_UNIT:
                self._waiting.remove(ticket)
                self._lend(ticket)

    def _lend(self, ticket: Ticket) -> None:
        self._held[ticket.unit] += 1
        ticket.granted(self._idle.pop())


FIRST_SECONDS = 0.1
LONGEST_SECONDS = 10.0

_BACK_OFF = BackOff(FIRST_SECONDS, LONGEST_SECONDS)


class NextTry:
    """Counts failures in a row. What fails while the next try is still to come counts once with the last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._not_before = 0.0

    @property
    def remaining(self) -> float:
        """Seconds until the next try; 0 when it may be made now."""
        return max(0.0, self._not_before - self._clock())

    def failed(self) -> float | None:
        """Returns the seconds until the next try, or None where that is settled already."""
        if self.remaining:
            return None
        self._failures += 1
        delay = _BACK_OFF.pause_after(self._failures)
        self._not_before = self._clock() + delay
        return delay

    def succeeded(self) -> None:
        self._failures = 0
        self._not_before = 0.0


log = logging.getLogger(__name__)

#: Seconds between looks at the workers' memory.
_WATCH_INTERVAL = 0.5

_ENDED_EARLY = "it ended before it was ready"


def start_zygote(folder: PluginFolder, workers: Workers) -> ZygoteProcess:
    """Start the process that loads the folder, and wait until it has. Raises `UserError` when it cannot.

    A module that cannot be shared, or that ends or holds up the process, is left out of the next one.
    """
    path, python = folder.directory, folder.python or sys.executable
    try:
        os.listdir(path)
    except OSError as error:
        raise UserError(f"plugin folder {path} cannot be read: {error.strerror}") from error
    known: dict[str, dict[str, Any]] = {}
    while True:
        zygote = ZygoteProcess(
            python,
            {
                "folder": path,
                "left_out": list(known),
                "late": [name for name, module in known.items() if module["error"] is None],
                "memory_limit": workers.memory_mib << 20,
                "log_level": logging.getLogger().getEffectiveLevel(),
            },
        )
        if zygote.wait_until_loaded(workers.load_seconds):
            zygote.modules = sorted([*zygote.modules, *known.values()], key=itemgetter("module"))
            return zygote
        zygote.close()
        end_children()  # what its imports had started, where it could not end that itself
        learned = {each["module"]: each for each in zygote.modules if not each["shareable"]}
        if not learned:
            break
        known |= learned
    reported = f": {one_line(zygote.complaint)}" if zygote.complaint else ""
    raise UserError(
        f"plugin folder {path}: its Python interpreter {python} ended while it loaded"
        f" the plugins (exit status {zygote.process.returncode}{reported}); it must be a Python 3.9 or later"
    )


class Pool:
    """Lives on an event loop: all methods are for its thread."""

    def __init__(self, folder: PluginFolder, workers: Workers, zygote: ZygoteProcess) -> None:
        self.folder = Path(folder.directory)
        self._settings, self._limits = folder, workers
        self.modules: list[dict[str, Any]] = zygote.modules
        #: Workers that ended, once ready, without our asking, since they were last counted.
        self.restarts = 0
        #: Set as soon as the warm workers stand ready.
        self.warm = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._zygote = zygote
        self._allocation = Allocation()
        #: Every worker whose end was not yet reported, and those of them that are ready and not discarded.
        self._known: dict[int, Worker] = {}
        self._workers: dict[int, Worker] = {}
        #: How many workers are asked for but not ready; and until when those that are there have to be.
        self._coming = 0
        self._starting: dict[Worker, asyncio.TimerHandle] = {}
        self._next_try = NextTry(self._loop.time)
        #: Whether new workers import modules that cannot be shared at once, or only when a call needs them.
        self._eager = True
        late = sum(not module["shareable"] and module["error"] is None for module in self.modules)
        self._start_timeout = workers.load_seconds * max(1, late)
        self._restarting: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        units = sum(len(unit["kinds"]) for module in self.modules for unit in module["units"])
        self._most = min(workers.most, max(workers.warm, WORKERS_PER_UNIT * units))
        self._loop.add_reader(zygote.control, self._hear)
        self._watching = self._loop.call_later(_WATCH_INTERVAL, self._watch)
        self._fill_up()

    def request(self, unit: str, granted: Callable[[Worker], None]) -> Ticket:
        """Ask for a worker to run the unit; `granted` is called with it, at once or later."""
        ticket = Ticket(unit, granted)
        if not self._allocation.request(ticket):
            self._fill_up()
        return ticket

    def withdraw(self, ticket: Ticket) -> None:
        """Give up a wish that was not granted."""
        self._allocation.withdraw(ticket)

    def give_back(self, unit: str, worker: Worker, retire: bool = False) -> None:
        """The call is over and the worker is well, but for what `retire` says."""
        worker.user = None
        worker.calls += 1
        limit = self._settings.calls_per_worker
        if retire or (limit and worker.calls >= limit):
            self.discard(unit, worker)
        else:
            standing = self._workers.get(worker.pid) is worker
            self._allocation.take_back(unit, worker if standing else None)

    def discard(self, unit: str, worker: Worker) -> None:
        """The worker is not to be used again: kill it and start another at once."""
        worker.user = None
        worker.kill()
        self._forget(worker)
        self._allocation.take_back(unit, None)
        self._fill_up()

    def stop_reading(self, worker: Worker) -> None:
        """Its connection has closed: there is nothing more to hear."""
        self._loop.remove_reader(worker.connection)

    @property
    def has_workers(self) -> bool:
        """Whether a worker stands ready or is lent."""
        return bool(self._workers)

    def worker_pids(self) -> list[int]:
        return list(self._workers)

    async def close(self) -> None:
        """Use no worker any more, and wait until all have ended."""
        self._closing.set()
        self._watching.cancel()
        if self._zygote.open:
            self._loop.remove_reader(self._zygote.control)
        for worker in self._known.values():
            self._loop.remove_reader(worker.connection)
        if self._restarting is not None:
            await self._restarting
        await asyncio.to_thread(self._zygote.close)

    def _fill_up(self) -> None:
        """Start as many workers as are missing, unless they keep failing to start."""
        standing = len(self._workers)
        target = min(max(self._limits.warm, standing + self._allocation.wanted()), self._most)
        missing = target - standing - self._coming
        if missing <= 0 or self._restarting is not None or self._next_try.remaining or self._closing.is_set():
            return
        for _ in range(missing):
            self._coming += 1
            self._zygote.spawn(self._eager)

    def _start_failed(self, reason: str) -> None:
        """Try again later, and each time later."""
        self._coming -= 1
        delay = self._next_try.failed()
        if delay is not None:
            log.error("no new worker for %s: %s; next try in %.1f s", self.folder, reason, delay)
            self._loop.call_later(delay, self._fill_up)

    def _hear(self) -> None:
        """Take what the zygote reports."""
        while not self._closing.is_set():
            try:
                event = self._zygote.receive()
            except BlockingIOError:
                return
            if event is None:
                self._replace_zygote()
                return
            self._note_event(event)

    def _note_event(self, event: dict[str, Any]) -> None:
        if event["event"] == "spawned":
            worker: Worker = event["worker"]
            self._known[worker.pid] = worker
            late = f"it was not ready within {self._start_timeout:g} s"
            self._starting[worker] = self._loop.call_later(self._start_timeout, self._started, worker, late)
            self._loop.add_reader(worker.connection, self._heard, worker)
        elif event["event"] == "ended":
            self._ended(event["pid"], event["status"])
        elif event["event"] == "refused":
            self._start_failed(event["error"])

    def _heard(self, worker: Worker) -> None:
        if worker.user is not None:
            worker.user.readable()
        elif worker in self._starting:
            self._started(worker, "" if worker.greets() else _ENDED_EARLY)
        else:
            # An idle worker has nothing to say: it has ended, or something that a unit left behind writes.
            worker.kill()
            self.restarts += self._forget(worker)
            self._fill_up()

    def _started(self, worker: Worker, trouble: str) -> None:
        """A worker that was asked for is there, or something kept it from becoming ready."""
        self._starting.pop(worker).cancel()
        if self._closing.is_set():
            return
        if trouble:
            worker.kill()
            self._forget(worker)
            # If a module's import did this, it shall hurt its own units only from now on.
            self._eager = False
            self._start_failed(trouble)
            return
        worker.first_size = worker.size()
        self._coming -= 1
        self._next_try.succeeded()
        self._workers[worker.pid] = worker
        self._allocation.add(worker)
        if len(self._workers) >= self._limits.warm:
            self.warm.set()

    def _forget(self, worker: Worker) -> bool:
        """Never lend the worker again. Returns whether it was one to be lent."""
        self._loop.remove_reader(worker.connection)
        self._allocation.remove(worker)
        if self._workers.get(worker.pid) is not worker:
            return False
        del self._workers[worker.pid]
        return True

    def _ended(self, pid: int, status: int | None) -> None:
        worker = self._known.pop(pid, None)
        if worker is None:
            return
        worker.status = status
        worker.reported = True
        self.restarts += self._forget(worker) and worker.ended_for is None
        if worker in self._starting:
            self._started(worker, _ENDED_EARLY)
        elif worker.user is not None:
            worker.user.ended()
        self._fill_up()

    def _watch(self) -> None:
        """Look after the workers' memory, and after starts that were put off."""
        self._watching = self._loop.call_later(_WATCH_INTERVAL, self._watch)
        limit = self._limits.memory_mib << 20
        for worker in list(self._workers.values()):
            grown = worker.size() - worker.first_size
            # An idle worker goes at half the limit already, before a call is hurt.
            if grown > limit or (grown > limit // 2 and worker.user is None):
                log.warning("worker %d of %s grew by %d MiB", worker.pid, self.folder, grown >> 20)
                worker.ended_for = Failure(Cause.MEMORY, "outgrew its memory limit")
                if worker.user is None:
                    self._forget(worker)
                worker.kill()
        self._fill_up()

    def _replace_zygote(self) -> None:
        """The zygote has ended, and the kernel has ended its workers with it: start all again."""
        log.error("the process that starts the workers of %s has ended; restarting it", self.folder)
        self._loop.remove_reader(self._zygote.control)
        self._restarting = self._loop.create_task(self._restart_zygote(self._zygote))
        if self._coming:
            self._next_try.failed()  # it may have been the start of a worker that ended it
        dead = list(self._known.values())
        for worker in dead:  # all of them first: a call that starts over must not be given one
            worker.kill()
            self.restarts += self._forget(worker) and worker.ended_for is None
        for worker in dead:
            self._ended(worker.pid, None)
        self._coming = 0

    async def _restart_zygote(self, old: ZygoteProcess) -> None:
        await asyncio.to_thread(old.close)
        await asyncio.to_thread(end_children)
        while self._zygote is old and not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self._next_try.remaining)
            try:
                self._zygote = await asyncio.to_thread(start_zygote, self._settings, self._limits)
            except UserError as error:
                log.error("%s", error)
                self._next_try.failed()
        self._restarting = None
        if not self._closing.is_set():
            self._loop.add_reader(self._zygote.control, self._hear)
            self._fill_up()
