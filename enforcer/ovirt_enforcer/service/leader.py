"""Leads, or watches who does: of several enforcers of an engine, only the one with the lease acts.

Each taking of the lease begins an epoch. What is decided is decided under one epoch, which is read before the
engine is; the database will not write it down (`Store.prepare(epoch=...)`) once that epoch is over, and the
last thing before a request is `still_leads(epoch)`, by the boot clock, which goes on while a process is
stopped. An epoch other than before means that another process may have led meanwhile: nothing that is kept in
memory counts any more, and all is to be read again.
"""

import logging
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ovirt_enforcer.log import LogText, report
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_service.errors import UserError
from ovirt_service.log import Complaint

#: A lease is renewed, or looked at by those who do not hold it, so often while it lasts.
_CHECKS_A_LEASE: Final = 3
#: When the database does not answer, it is asked again so much sooner.
_RETRIES_A_CHECK: Final = 5
_log = logging.getLogger(__name__)


def boot_clock() -> float:
    """Seconds since the machine was booted, with those in which the process was stopped or all slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def own_name() -> str:
    """A name that no other process has, now or later."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


class _Term(NamedTuple):
    """An epoch of this process, and until when it surely leads, by the boot clock."""

    epoch: int
    until: float


@dataclass(eq=False)
class Leader:
    """One enforcer's part in the choice of who leads, for any thread; no method raises `StoreAway`."""

    leases: LeaseStore
    #: This process's own.
    name: str
    lease_seconds: float
    #: Must advance while the process is suspended.
    clock: Callable[[], float] = boot_clock
    #: Called with the epoch whenever this process begins to lead, and with 0 whenever it ceases to.
    changed: Callable[[int], None] = lambda epoch: None
    #: Called before it begins and at each renewal, with the moment until which it surely leads.
    lasts: Callable[[float], None] = lambda until: None
    #: Who leads, as far as this process knows; empty if none does.
    known: str = field(default="", init=False)
    _term: _Term | None = field(default=None, init=False)
    _due: float = field(default=-math.inf, init=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False)
    _resigned: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        self._check_seconds = self.lease_seconds / _CHECKS_A_LEASE
        self._away = Complaint(_log, "the lease cannot be looked at", "the lease can be looked at again")

    def tend(self) -> bool:
        """Renew the lease, or take it where it is free, if that is due; whether this process leads now.

        A lease that was lost is not taken again by the same call, but may be by another thread's: what shows
        that another process may have led meanwhile is another `epoch` than before.
        """
        with self._lock:
            if self.clock() >= self._due and not self._resigned.is_set():
                self._check_lease()
        return self.epoch > 0

    @property
    def epoch(self) -> int:
        """The epoch in which this process leads now; 0, which no epoch is, while it does not."""
        term = self._term
        return term.epoch if term is not None and self.clock() < term.until else 0

    def still_leads(self, epoch: int) -> bool:
        """Whether this process leads in this epoch and will for a while: to be asked just before a request.

        Answered by the boot clock as long as most of the lease is left, else by the database.
        """
        term = self._term
        if term is None or term.epoch != epoch:
            return False
        if term.until - self.clock() <= self._check_seconds:
            with self._lock:
                self._due = self.clock()
                self.tend()
        return self.epoch == epoch

    def seconds_until_due(self) -> float:
        return max(0.0, self._due - self.clock())

    def step_down(self) -> None:
        """Lead no more, for good, and let another take the lease at once."""
        self._resigned.set()
        with self._lock:
            term = self._term
            if term is None:
                return
            self._cease()
            try:
                self.leases.release(term.epoch)
            except UserError as away:
                report(LogText.LEASE_LEFT, error=away)

    def tend_concurrently(self, hangs: Callable[[], bool]) -> None:
        """Tend from a thread until `step_down`, so that a long piece of work costs no lease.

        A process that `hangs` loses it nevertheless: one that gets nothing done must not keep others from it.
        """
        threading.Thread(target=self._keep_lease, args=(hangs,), name="lease", daemon=True).start()

    def _keep_lease(self, hangs: Callable[[], bool]) -> None:
        while not self._resigned.wait(max(self.seconds_until_due(), self._check_seconds / _RETRIES_A_CHECK)):
            if not hangs():
                self.tend()

    def _check_lease(self) -> None:
        asked = self.clock()
        self._due = asked + self._check_seconds
        try:
            if self._term is None:
                self._take_lease(asked)
            else:
                self._renew(self._term, asked)
        except UserError as away:  # whatever a database says: the thread that keeps the lease goes on
            self._away.say(str(away))
            self._due = self.clock() + self._check_seconds / _RETRIES_A_CHECK
        else:
            self._away.say("")

    def _renew(self, term: _Term, asked: float) -> None:
        """Make the term longer; one that may have ended is over."""
        if asked < term.until and self.leases.renew(term.epoch, self.lease_seconds):
            self._begin_term(term.epoch, asked)
            return
        self._cease()
        self._due = asked
        report(LogText.LEADS_NO_MORE, epoch=term.epoch)

    def _take_lease(self, asked: float) -> None:
        """Take a lease that is free; what another holds is not touched, and looked at when it may end."""
        held = self.leases.leader()
        if held is not None and held.owner != self.name:
            if held.owner != self.known:
                self.known = held.owner
                report(LogText.FOLLOWS, name=held.owner)
            self._due = asked + min(self._check_seconds, held.left_seconds)
            return
        epoch = self.leases.take_lease(self.name, self.lease_seconds)
        if epoch is not None:
            self._begin_term(epoch, asked)
            self.known = self.name
            report(LogText.LEADS, epoch=epoch, name=self.name)
            self.changed(epoch)

    def _begin_term(self, epoch: int, asked: float) -> None:
        self.lasts(asked + self.lease_seconds)
        self._term = _Term(epoch, asked + self.lease_seconds)

    def _cease(self) -> None:
        self._term, self.known = None, ""
        self.changed(0)
