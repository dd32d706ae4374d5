"""Runs the units of one call side by side until the deadline; cuts off a unit that fails again and again."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

import msgspec

from ovirt_scheduler_proxy.pool import Pool
from ovirt_scheduler_proxy.processes import Cause, Failure, Outcome, Worker, failed
from ovirt_scheduler_proxy.worker.frames import BadFrame

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

#: A unit that awaits something is asked again after these seconds, and for no longer than this: it holds no
#: worker meanwhile.
_AGAIN_SECONDS = 0.05
_AWAITED_SECONDS = 0.3

_CONFUSED = failed(Cause.CRASHED, "confused its worker process")
_LENT = failed(Cause.NO_WORKER, "got no worker in time: earlier calls still hold them")
_NOT_STARTED = failed(Cause.NOT_STARTED, "got no worker in time: none can be started")
_KILLED = Failure(Cause.CRASHED, "lost its worker process several times: it was killed")


class Job(msgspec.Struct, frozen=True):
    """One unit to ask: `key` distinguishes units for the limit on workers, `request` is the packed frame."""

    key: str
    pool: Pool
    request: bytes


_decode_head = msgspec.json.Decoder(Outcome).decode


async def ask(job: Job, deadline: float) -> Outcome:
    """Ask a unit once there is a worker for it; end what is not done by `deadline` (the loop's time)."""
    asked = _Asked(job)
    try:
        async with asyncio.timeout_at(deadline):
            return await asked.answer()
    except TimeoutError:
        return asked.overrun()


class _Asked:
    """One unit that is asked: the worker that is at it, and what the unit said last."""

    def __init__(self, job: Job) -> None:
        self._key, self._pool, self._request = job.key, job.pool, job.request
        self._worker: Worker | None = None
        #: Of a unit that awaits something, what it is once that does not come: a failure.
        self._awaiting: Outcome | None = None

    async def answer(self) -> Outcome:
        """What the unit answers, or why it does not."""
        until, attempts = time.monotonic() + _AWAITED_SECONDS, 0
        while True:
            outcome = await self._ask_once()
            if outcome.failure is _KILLED and attempts < RETRIES:
                attempts += 1
                continue
            if outcome.failure is None or outcome.failure.cause is not Cause.AWAITED:
                return outcome
            failure = Failure(Cause.RAISED, outcome.failure.sentence)
            self._awaiting = msgspec.structs.replace(outcome, failure=failure)
            if time.monotonic() + _AGAIN_SECONDS >= until:
                return self._awaiting
            await asyncio.sleep(_AGAIN_SECONDS)

    def overrun(self) -> Outcome:
        """The deadline has come: end the worker that is still at it, and say so."""
        if self._worker is None:
            return self._awaiting or (_LENT if self._pool.has_workers else _NOT_STARTED)
        errors = self._worker.stderr_text()
        self._pool.discard(self._key, self._worker)
        return failed(Cause.OVERRAN, "did not answer in time", errors=errors)

    async def _ask_once(self) -> Outcome:
        """Ask in one worker, which may end meanwhile: by the unit's own doing, unless it was killed."""
        worker = self._worker = await self._pool.lend(self._key)
        try:
            frame = await worker.ask(self._request)
            reported = None if frame is None else _decode_head(frame[1])
        except (BadFrame, msgspec.MsgspecError):
            self._worker = None
            self._pool.discard(self._key, worker)
            return _CONFUSED
        self._worker = None
        if frame is None or reported is None:
            errors, failure = worker.stderr_text(), worker.why_it_ended() or _KILLED
            self._pool.discard(self._key, worker)
            return Outcome(failure=failure, errors=errors)
        self._pool.give_back(self._key, worker, reported.retire)
        body = frame[2]
        at = len(body) - reported.reasons_size
        return msgspec.structs.replace(reported, body=body[:at], reasons=body[at:])
