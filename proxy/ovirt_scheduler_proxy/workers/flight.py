"""Runs the units of one call side by side, until each has an outcome or the deadline has come."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ..inside.frames import BadFrame, Inbox
from .lending import Ticket
from .outcome import Cause, Failure, Outcome, failed
from .pool import Pool

#: A call whose worker was killed from outside (by the kernel, by an administrator) starts over so many times.
RETRIES = 3

#: Seconds to wait for the report of how a worker ended.
_REPORT_WAIT = 0.5


@dataclass(frozen=True)
class Job:
    """One unit to ask: `key` tells units apart for the limit on workers, `request` is the packed frame."""

    key: str
    pool: Pool
    request: bytes


class _Head(msgspec.Struct):
    """The head of a worker's reply: see `inside.serving.Reply`."""

    cause: str | None
    sentence: str
    printed: str
    errors: str
    seconds: float
    retire: bool


_decode_head = msgspec.json.Decoder(_Head).decode


class _Wake(threading.local):
    """One eventfd for each thread that runs calls: written to when a worker is granted."""

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def __del__(self) -> None:
        os.close(self.descriptor)

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.descriptor)


_wake = _Wake()


def run(jobs: Sequence[Job], deadline: float) -> list[Outcome]:
    """Ask all units at once; their outcomes in order, by `deadline` (of `time.monotonic`) at the latest."""
    poll = select.poll()
    flights = [_Flight(job, poll) for job in jobs]
    try:
        _run_all(flights, poll, deadline)
    finally:
        for flight in flights:
            flight.give_up(deadline)
    return [flight.outcome or failed(Cause.NO_WORKER, "was not asked") for flight in flights]


def _run_all(flights: list[_Flight], poll: select.poll, deadline: float) -> None:
    by_descriptor: dict[int, _Flight] = {}
    for flight in flights:
        flight.start(by_descriptor)
    pending = flights
    wake = _wake.descriptor
    waiting_for_worker = any(flight.waits for flight in flights)
    if waiting_for_worker:
        poll.register(wake, select.POLLIN)
    while pending:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return
        events = poll.poll(remaining * 1000 + 1)
        touched = {by_descriptor[number] for number, _ in events if number in by_descriptor}
        if any(number == wake for number, _ in events):
            _wake.drain()
        for flight in touched:
            flight.proceed(by_descriptor, deadline)
        for flight in pending:
            if flight.waits:
                flight.start(by_descriptor)
        pending = [flight for flight in pending if flight.outcome is None]
        if not waiting_for_worker and any(flight.waits for flight in pending):
            waiting_for_worker = True
            poll.register(wake, select.POLLIN)


class _Flight:
    """One unit on its way: waits for a worker, then for its answer."""

    def __init__(self, job: Job, poll: select.poll) -> None:
        self.outcome: Outcome | None = None
        self._job = job
        self._poll = poll
        self._attempts = 0
        self._ticket: Ticket = job.pool.request(job.key, _wake.descriptor)
        self._inbox = Inbox()
        self._unsent = memoryview(b"")
        self._sent = False
        self._watched: tuple[int, int] | None = None

    @property
    def waits(self) -> bool:
        return self.outcome is None and not self._sent

    def start(self, by_descriptor: dict[int, _Flight]) -> None:
        """Send the request if a worker is granted."""
        worker = self._ticket.worker
        if worker is None:
            return
        self._sent = True
        self._inbox = Inbox()
        self._unsent = memoryview(self._job.request)
        self._watched = worker.connection.fileno(), worker.pidfd
        for descriptor in self._watched:
            by_descriptor[descriptor] = self
            self._poll.register(descriptor, select.POLLIN)
        self._send()

    def proceed(self, by_descriptor: dict[int, _Flight], deadline: float) -> None:
        """Something has happened to the worker: it wrote, it can be written to, or it ended."""
        worker = self._ticket.worker
        if worker is None or self.outcome is not None:
            return
        if self._unsent:
            self._send()
        try:
            received = worker.connection.recv(self._inbox.wanted())
            frame = self._inbox.feed(received) if received else None
        except BlockingIOError:
            if select.select([worker.pidfd], [], [], 0)[0]:
                self._lost(by_descriptor, deadline)
            return
        except (OSError, BadFrame):
            self._lost(by_descriptor, deadline)
            return
        if frame is not None:
            self._unwatch(by_descriptor)
            self._land(*frame)
        elif not received:
            self._lost(by_descriptor, deadline)

    def give_up(self, deadline: float) -> None:
        """The deadline has come: end the worker that is still at it, and say so."""
        if self.outcome is not None:
            return
        if self._sent and self._ticket.worker is not None:
            words = self._ticket.worker.last_words()
            self._job.pool.discard(self._ticket)
            self.outcome = failed(Cause.OVERRAN, "did not answer in time", errors=words)
        else:
            self._job.pool.withdraw(self._ticket)
            self.outcome = failed(Cause.NO_WORKER, "got no worker in time: its earlier calls still hold them")

    def _send(self) -> None:
        worker = self._ticket.worker
        if worker is None:
            return
        try:
            while self._unsent:
                self._unsent = self._unsent[worker.connection.send(self._unsent) :]
        except BlockingIOError:
            self._poll.modify(worker.connection, select.POLLIN | select.POLLOUT)
            return
        except OSError:
            self._unsent = memoryview(b"")  # it has ended; reading will tell
        self._poll.modify(worker.connection, select.POLLIN)

    def _land(self, head: bytes, body: bytes) -> None:
        try:
            told = _decode_head(head)
            cause = Cause(told.cause) if told.cause is not None else None
        except (msgspec.MsgspecError, ValueError):
            self._job.pool.discard(self._ticket)
            self.outcome = failed(Cause.CRASHED, "confused its worker process")
            return
        self._job.pool.give_back(self._ticket, retire=told.retire)
        failure = Failure(cause, told.sentence) if cause is not None else None
        self.outcome = Outcome(body, failure, told.seconds, told.printed, told.errors)

    def _lost(self, by_descriptor: dict[int, _Flight], deadline: float) -> None:
        """The worker is gone. Unless that was the unit's own doing, try another."""
        worker = self._ticket.worker
        if worker is None:
            return
        self._unwatch(by_descriptor)
        alive = not select.select([worker.pidfd], [], [], 0)[0]
        words = worker.last_words()
        if not alive:
            worker.ended.wait(max(0.0, min(_REPORT_WAIT, deadline - time.monotonic())))
        self._job.pool.discard(self._ticket)
        failure = (
            Failure(Cause.CRASHED, "closed its worker's connection to the proxy") if alive else worker.death()
        )
        if failure is None and self._attempts < RETRIES:
            self._attempts += 1
            self._sent = False
            self._ticket = self._job.pool.request(self._job.key, _wake.descriptor)
        else:
            failure = failure or Failure(
                Cause.CRASHED, "lost its worker process several times: it was killed"
            )
            self.outcome = Outcome(failure=failure, errors=words)

    def _unwatch(self, by_descriptor: dict[int, _Flight]) -> None:
        for descriptor in self._watched or ():
            by_descriptor.pop(descriptor, None)
            self._poll.unregister(descriptor)
        self._watched = None
