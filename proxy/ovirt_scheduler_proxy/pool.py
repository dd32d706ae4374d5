"""The workers of one plugin folder: who may use which next, how many are kept ready; and how one is asked."""

import asyncio
import contextlib
import logging
import os
import socket
import sys
import time
from collections import defaultdict
from typing import Any

import msgspec

from ovirt_scheduler_proxy.processes import (
    Cause,
    Failure,
    Outcome,
    Worker,
    ZygoteProcess,
    end_children,
    failed,
)
from ovirt_scheduler_proxy.settings import PluginFolder, Workers
from ovirt_scheduler_proxy.worker.contract import one_line
from ovirt_scheduler_proxy.worker.kernel import BadFrame
from ovirt_service.daemon import BackOff
from ovirt_service.errors import UserError

log = logging.getLogger(__name__)

#: A unit holds its first worker and at most one more, so that a hanging unit leaves the others theirs.
WORKERS_PER_UNIT = 2

#: The pauses after starts that failed.
BACK_OFF = BackOff(0.1, 10.0)

#: Seconds between looks at the workers' memory.
_WATCH_INTERVAL = 0.5


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
            zygote.modules = sorted([*zygote.modules, *known.values()], key=lambda each: str(each["module"]))
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


#: A unit whose worker was killed from outside (by the kernel or an administrator) starts over this many
#: times; the death of all workers with their zygote is one of them.
RETRIES = 3

#: A unit that awaits something is asked again after these seconds, and for no longer than this: it holds no
#: worker meanwhile.
_AGAIN_SECONDS = 0.05
_AWAITED_SECONDS = 0.3

_CONFUSED = failed(Cause.CRASHED, "confused its worker process")
_LENT = failed(Cause.NO_WORKER, "got no worker in time: earlier calls still hold them")
_NOT_STARTED = failed(Cause.NOT_STARTED, "got no worker in time: none can be started")
_KILLED = Failure(Cause.CRASHED, "lost its worker process several times: it was killed")

_decode_head = msgspec.json.Decoder(Outcome).decode


class Pool:
    """Lives on an event loop: all methods are for its thread."""

    def __init__(self, folder: PluginFolder, workers: Workers, zygote: ZygoteProcess) -> None:
        self.folder = folder.directory
        self._settings, self._limits = folder, workers
        self.modules: list[dict[str, Any]] = zygote.modules
        #: Workers that ended, once ready, without our asking, since they were last counted.
        self.restarts = 0
        #: Set as soon as the warm workers stand ready.
        self.warm = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._zygote = zygote
        self._idle: asyncio.LifoQueue[Worker] = asyncio.LifoQueue()
        #: How many workers each unit may have still, and how many units wait for one that is idle.
        self._shares = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(WORKERS_PER_UNIT))
        self._waiting = 0
        #: Every worker whose end was not yet reported, and those of them that are ready and not discarded.
        self._known: dict[int, Worker] = {}
        self.workers: dict[int, Worker] = {}
        #: How many workers are asked for but not ready; and what waits until those that are there are.
        self._coming = 0
        self._starting: set[asyncio.Task[None]] = set()
        #: How many starts failed in a row, and until when none is tried again (the loop's time).
        self._failures = 0
        self._not_before = 0.0
        #: Whether new workers import modules that cannot be shared at once, or only when a call needs them.
        self._eager = True
        late = sum(not module["shareable"] and module["error"] is None for module in self.modules)
        self._start_timeout = workers.load_seconds * max(1, late)
        self._restarting: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        units = sum(len(unit["kinds"]) for module in self.modules for unit in module["units"])
        self._most = min(workers.most, max(workers.warm, WORKERS_PER_UNIT * units))
        self._loop.add_reader(zygote.control, self._read_control)
        self._watching = self._loop.call_later(_WATCH_INTERVAL, self._watch)
        self._fill_up()

    async def ask(self, unit: str, request: bytes, deadline: float) -> Outcome:
        """What a unit answers to a packed request, or why it does not.

        `unit` distinguishes units for the limit on workers. What is not done by `deadline` (the loop's time)
        is ended.
        """
        until, attempts = time.monotonic() + _AWAITED_SECONDS, 0
        #: The worker that is at it; and of a unit that awaits what does not come, its failure.
        worker: Worker | None = None
        awaiting: Outcome | None = None
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    worker = await self.lend(unit)
                    outcome = await self._ask_worker(unit, worker, request)
                    worker = None
                    if outcome.failure is _KILLED and attempts < RETRIES:
                        attempts += 1
                        continue
                    if outcome.failure is None or outcome.failure.cause is not Cause.AWAITED:
                        return outcome
                    failure = Failure(Cause.RAISED, outcome.failure.sentence)
                    awaiting = msgspec.structs.replace(outcome, failure=failure)
                    if time.monotonic() + _AGAIN_SECONDS >= until:
                        return awaiting
                    await asyncio.sleep(_AGAIN_SECONDS)
        except TimeoutError:
            if worker is None:
                return awaiting or (_LENT if self.workers else _NOT_STARTED)
            errors = worker.stderr_text()
            self.discard(unit, worker)
            return failed(Cause.OVERRAN, "did not answer in time", errors=errors)

    async def _ask_worker(self, unit: str, worker: Worker, request: bytes) -> Outcome:
        """Ask in one worker, which may end meanwhile: by the unit's own doing, unless it was killed."""
        try:
            frame = await worker.ask(request)
            reported = None if frame is None else _decode_head(frame[1])
        except (BadFrame, msgspec.MsgspecError):
            self.discard(unit, worker)
            return _CONFUSED
        if frame is None or reported is None:
            errors, failure = worker.stderr_text(), worker.why_it_ended() or _KILLED
            self.discard(unit, worker)
            return Outcome(failure=failure, errors=errors)
        self.give_back(unit, worker, reported.retire)
        body = frame[2]
        at = len(body) - reported.reasons_size
        return msgspec.structs.replace(reported, body=body[:at], reasons=body[at:])

    async def lend(self, unit: str) -> Worker:
        """Wait for a worker to run the unit; who waits for an idle one gets it in order of arrival."""
        await self._shares[unit].acquire()
        self._waiting += 1
        try:
            if self._idle.empty():
                self._fill_up()
            while not (worker := await self._idle.get()).usable:
                pass  # its end is about to be reported
            return worker
        except asyncio.CancelledError:
            self._shares[unit].release()
            raise
        finally:
            self._waiting -= 1

    def give_back(self, unit: str, worker: Worker, retire: bool = False) -> None:
        """The call is over and the worker is well, but for what `retire` says."""
        worker.calls += 1
        limit = self._settings.calls_per_worker
        if retire or (limit and worker.calls >= limit):
            self.discard(unit, worker)
            return
        if self.workers.get(worker.pid) is worker:
            self._idle.put_nowait(worker)
        self._shares[unit].release()

    def discard(self, unit: str, worker: Worker) -> None:
        """The worker is not to be used again: kill it and start another at once."""
        worker.kill()
        self._forget(worker)
        self._shares[unit].release()
        self._fill_up()

    async def close(self) -> None:
        """Use no worker any more, and wait until all have ended."""
        self._closing.set()
        self._watching.cancel()
        if self._restarting is None:
            self._loop.remove_reader(self._zygote.control)
        for task in self._starting:
            task.cancel()
        for worker in self._known.values():
            worker.close()
        if self._restarting is not None:
            await self._restarting
        await asyncio.to_thread(self._zygote.close)

    def _fill_up(self) -> None:
        """Start as many workers as are missing, unless they keep failing to start."""
        standing = len(self.workers)
        waiting = max(0, self._waiting - self._idle.qsize())
        target = min(max(self._limits.warm, standing + waiting), self._most)
        missing = target - standing - self._coming
        if missing <= 0 or self._restarting is not None or self._pause or self._closing.is_set():
            return
        for _ in range(missing):
            self._coming += 1
            self._zygote.spawn(self._eager)

    @property
    def _pause(self) -> float:
        """Seconds until a start is tried again; 0 when it may be now."""
        return max(0.0, self._not_before - self._loop.time())

    def _note_failure(self) -> float | None:
        """The seconds until the next try; None where that is settled: what fails meanwhile counts once."""
        if self._pause:
            return None
        self._failures += 1
        delay = BACK_OFF.pause_after(self._failures)
        self._not_before = self._loop.time() + delay
        return delay

    def _start_failed(self, reason: str) -> None:
        """Try again later, and each time later."""
        self._coming -= 1
        delay = self._note_failure()
        if delay is not None:
            log.error("no new worker for %s: %s; next try in %.1f s", self.folder, reason, delay)
            self._loop.call_later(delay, self._fill_up)

    def _read_control(self) -> None:
        """Take what the zygote reports."""
        while not self._closing.is_set():
            try:
                event = self._zygote.receive()
            except BlockingIOError:
                return
            if event is None:
                self._replace_zygote()
                return
            if event["event"] == "spawned":
                worker: Worker = event["worker"]
                self._known[worker.pid] = worker
                task = self._loop.create_task(self._start(worker, event["connection"]))
                self._starting.add(task)
                task.add_done_callback(self._starting.discard)
            elif event["event"] == "ended":
                self._ended(event["pid"], event["status"])
            elif event["event"] == "refused":
                self._start_failed(event["error"])

    async def _start(self, worker: Worker, connection: socket.socket) -> None:
        """Wait until a worker that was asked for is ready, or something keeps it from that."""
        await self._loop.create_connection(lambda: worker, sock=connection)
        trouble = f"it was not ready within {self._start_timeout:g} s"
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._start_timeout):
                trouble = "" if await worker.greets() else "it ended before it was ready"
        if trouble:
            worker.kill()
            # If a module's import did this, it shall hurt its own units only from now on.
            self._eager = False
            self._start_failed(trouble)
            return
        worker.first_size = worker.size()
        self._coming -= 1
        self._failures, self._not_before = 0, 0.0
        self.workers[worker.pid] = worker
        self._idle.put_nowait(worker)
        if len(self.workers) >= self._limits.warm:
            self.warm.set()

    def _forget(self, worker: Worker) -> bool:
        """Never lend the worker again. Returns whether it was one to be lent."""
        if self.workers.get(worker.pid) is not worker:
            return False
        del self.workers[worker.pid]
        idle = [self._idle.get_nowait() for _ in range(self._idle.qsize())]
        for one in reversed(idle):
            if one is not worker:
                self._idle.put_nowait(one)
        return True

    def _ended(self, pid: int, status: int | None) -> None:
        worker = self._known.pop(pid, None)
        if worker is None:
            return
        self.restarts += self._forget(worker) and worker.ended_for is None
        worker.report_end(status)
        self._fill_up()

    def _watch(self) -> None:
        """Look after the workers' memory, and after starts that were put off."""
        self._watching = self._loop.call_later(_WATCH_INTERVAL, self._watch)
        limit = self._limits.memory_mib << 20
        for worker in list(self.workers.values()):
            grown = worker.size() - worker.first_size
            # An idle worker goes at half the limit already, before a call is hurt.
            if grown > limit or (grown > limit // 2 and not worker.busy):
                log.warning("worker %d of %s grew by %d MiB", worker.pid, self.folder, grown >> 20)
                worker.ended_for = Failure(Cause.MEMORY, "outgrew its memory limit")
                if not worker.busy:
                    self._forget(worker)
                worker.kill()
        self._fill_up()

    def _replace_zygote(self) -> None:
        """The zygote has ended, and the kernel has ended its workers with it: start all again."""
        log.error("the process that starts the workers of %s has ended; restarting it", self.folder)
        self._loop.remove_reader(self._zygote.control)
        self._restarting = self._loop.create_task(self._restart_zygote(self._zygote))
        if self._coming:
            self._note_failure()  # it may have been the start of a worker that ended it
        for task in self._starting:
            task.cancel()
        for worker in list(self._known.values()):
            worker.kill()
            self._ended(worker.pid, None)
        self._coming = 0

    async def _restart_zygote(self, old: ZygoteProcess) -> None:
        await asyncio.to_thread(old.close)
        await asyncio.to_thread(end_children)
        while self._zygote is old and not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self._pause)
            try:
                self._zygote = await asyncio.to_thread(start_zygote, self._settings, self._limits)
            except UserError as error:
                log.error("%s", error)
                self._note_failure()
        self._restarting = None
        if not self._closing.is_set():
            self._loop.add_reader(self._zygote.control, self._read_control)
            self._fill_up()
