"""Runs the units of one call side by side until the deadline; cuts off a unit that fails again and again."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from ovirt_scheduler_proxy.pool import Pool
from ovirt_scheduler_proxy.processes import Cause, Failure, Outcome, Worker, failed
from ovirt_scheduler_proxy.worker.frames import BadFrame, Inbox, marked

#: This many overruns, or crashes, within `WINDOW_SECONDS` open the breaker.
OVERRUNS = 3
CRASHES = 5
WINDOW_SECONDS = 60.0

#: After so long one call is let through, to try whether the unit is well again.
OPEN_SECONDS = 30.0

_CRASHES = frozenset({Cause.CRASHED, Cause.EXITED, Cause.MEMORY})
#: What takes a call's whole deadline.
_OVERRUNS = frozenset({Cause.OVERRAN, Cause.NOT_STARTED})


class _Breaker:
    """The breaker of one unit: closed, open, or half-open while one call tries."""

    def __init__(self) -> None:
        self.overruns: deque[float] = deque(maxlen=OVERRUNS)
        self.crashes: deque[float] = deque(maxlen=CRASHES)
        self.opened_at: float | None = None
        self.trying = False

    def fail(self, times: deque[float], now: float) -> None:
        times.append(now)
        often = len(times) == times.maxlen and now - times[0] <= WINDOW_SECONDS
        if often or self.trying:
            self.opened_at = now
        self.trying = False


class Breakers:
    """The breakers of all units, distinguished by a key."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._breakers: dict[str, _Breaker] = {}

    def admit(self, key: str, ready: bool = True) -> bool:
        """Whether the unit may be asked. When half-open, the first who asks may and all others may not.

        Where no worker is `ready`, a unit that was cut off stays so: trying would take a whole deadline.
        """
        breaker = self._breakers.get(key)
        if breaker is None or breaker.opened_at is None:
            return True
        if not ready or breaker.trying or self._clock() - breaker.opened_at < OPEN_SECONDS:
            return False
        breaker.trying = True
        return True

    def record(self, key: str, cause: Cause | None) -> None:
        """Note how a call that was admitted ended: with a failure, or well (None)."""
        if cause in _OVERRUNS or cause in _CRASHES:
            breaker = self._breakers.setdefault(key, _Breaker())
            breaker.fail(breaker.overruns if cause in _OVERRUNS else breaker.crashes, self._clock())
        elif key in self._breakers and self._breakers[key].trying:
            if cause is Cause.NO_WORKER:
                self._breakers[key].trying = False  # it was never asked: nothing is known
            else:
                del self._breakers[key]  # it answered, be it with a failure of another kind: it is back

    def open_keys(self) -> list[str]:
        """The units that are cut off, or on trial."""
        return sorted(key for key, breaker in self._breakers.items() if breaker.opened_at is not None)


#: A unit whose worker was killed from outside (by the kernel or an administrator) starts over this many
#: times; the death of all workers with their zygote is one of them.
RETRIES = 3

#: Seconds to wait for the report of how a worker ended.
_REPORT_WAIT = 0.5


#: A unit that awaits something is asked again after these seconds, and for no longer than this: it holds no
#: worker meanwhile.
_AGAIN_SECONDS = 0.05
_AWAITED_SECONDS = 0.3

_CONFUSED = failed(Cause.CRASHED, "confused its worker process")
_LENT = failed(Cause.NO_WORKER, "got no worker in time: earlier calls still hold them")
_NOT_STARTED = failed(Cause.NOT_STARTED, "got no worker in time: none can be started")


class Job(msgspec.Struct, frozen=True):
    """One unit to ask: `key` distinguishes units for the limit on workers, `request` is the packed frame."""

    key: str
    pool: Pool
    request: bytes


_decode_head = msgspec.json.Decoder(Outcome).decode


def run(jobs: Sequence[Job], deadline: float, done: Callable[[list[Outcome]], None]) -> None:
    """Ask all units at once. `done` gets their outcomes in order, by `deadline` (the loop's time)."""
    loop = asyncio.get_running_loop()
    left = len(jobs)

    def end_one() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            timer.cancel()
            done([job.outcome for job in running])

    def expire() -> None:
        for job in running:
            job.expire()

    if not jobs:
        done([])
        return
    running = [_RunningJob(job, loop, end_one) for job in jobs]
    timer = loop.call_at(deadline, expire)
    for job in running:
        job.start()


class _RunningJob:
    """One unit that is asked: waits for a worker, then for its answer. It is the worker's user meanwhile."""

    #: What stands here until the job has ended.
    outcome = failed(Cause.NO_WORKER, "was not asked")

    def __init__(self, job: Job, loop: asyncio.AbstractEventLoop, on_end: Callable[[], None]) -> None:
        self._job = job
        self._loop = loop
        self._on_end = on_end
        self._over = False
        self._attempts = 0
        #: Until when the unit is asked again, and what it said last.
        self._until = loop.time() + _AWAITED_SECONDS
        self._awaiting: Outcome | None = None
        self._worker: Worker | None = None
        self._inbox = Inbox()
        self._unsent = memoryview(b"")

    def start(self) -> None:
        if self._over:
            return
        self._ticket = self._job.pool.request(self._job.key, self._granted)

    def expire(self) -> None:
        """The deadline has come: end the worker that is still at it, and say so."""
        if self._over:
            return
        worker = self._worker
        if worker is None:
            self._job.pool.withdraw(self._ticket)
            self._end_with(self._awaiting or (_LENT if self._job.pool.has_workers else _NOT_STARTED))
            return
        errors = worker.stderr_text()
        self._release(worker, discard=True)
        self._end_with(failed(Cause.OVERRAN, "did not answer in time", errors=errors))

    def readable(self) -> None:
        worker = self._worker
        if worker is None:
            return
        try:
            received = worker.connection.recv(self._inbox.wanted())
            frame = self._inbox.feed(received) if received else None
        except BlockingIOError:
            return
        except ConnectionError:
            received, frame = b"", None
        except BadFrame:
            self._release(worker, discard=True)
            self._end_with(_CONFUSED)
            return
        if frame is not None:
            self._read(worker, *frame)
        elif not received:
            # It has ended, and how is about to be reported; or a unit has closed what is not its own.
            self._job.pool.stop_reading(worker)
            self._loop.call_later(_REPORT_WAIT, self._gone, worker)

    def ended(self) -> None:
        worker = self._worker
        if worker is None:
            return
        self.readable()  # it may have answered before it ended
        self._gone(worker)

    def _granted(self, worker: Worker) -> None:
        self._worker = worker
        worker.user = self
        self._inbox = Inbox()
        self._mark = random.getrandbits(32)
        self._unsent = memoryview(marked(self._job.request, self._mark))
        self._send(first=True)

    def _send(self, first: bool = False) -> None:
        """Write what the worker takes; the rest when it is ready for more."""
        worker = self._worker
        if worker is None:
            return
        try:
            self._unsent = self._unsent[worker.connection.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent = memoryview(b"")  # it has ended; reading will show it
        if self._unsent and first:
            self._loop.add_writer(worker.connection, self._send)
        elif not self._unsent and not first:
            self._loop.remove_writer(worker.connection)

    def _read(self, worker: Worker, mark: int, head: bytes, body: bytes) -> None:
        try:
            # Another mark: the unit wrote it, or one before it, and the answer is still to come.
            reported = _decode_head(head) if mark == self._mark else None
        except msgspec.MsgspecError:
            reported = None
        if reported is None:
            self._release(worker, discard=True)
            self._end_with(_CONFUSED)
            return
        self._release(worker, discard=False, retire=reported.retire)
        at, failure = len(body) - reported.reasons_size, reported.failure
        if failure is None or failure.cause is not Cause.AWAITED:
            self._end_with(msgspec.structs.replace(reported, body=body[:at], reasons=body[at:]))
            return
        # What awaits something that does not come has failed.
        self._awaiting = msgspec.structs.replace(reported, failure=Failure(Cause.RAISED, failure.sentence))
        if self._loop.time() + _AGAIN_SECONDS < self._until:
            self._loop.call_later(_AGAIN_SECONDS, self.start)
        else:
            self._end_with(self._awaiting)

    def _gone(self, worker: Worker) -> None:
        """The worker has ended. Unless that was the unit's own doing, try another."""
        if self._worker is not worker:
            return
        errors = worker.stderr_text()
        failure = worker.why_it_ended()
        self._release(worker, discard=True)
        if failure is None and self._attempts < RETRIES:
            self._attempts += 1
            self.start()
            return
        failure = failure or Failure(Cause.CRASHED, "lost its worker process several times: it was killed")
        self._end_with(Outcome(failure=failure, errors=errors))

    def _release(self, worker: Worker, discard: bool, retire: bool = False) -> None:
        if self._unsent:
            self._loop.remove_writer(worker.connection)
        self._worker = None
        if discard:
            self._job.pool.discard(self._job.key, worker)
        else:
            self._job.pool.give_back(self._job.key, worker, retire)

    def _end_with(self, outcome: Outcome) -> None:
        self._over = True
        self.outcome = outcome
        self._on_end()
