"""Who may use which worker next: the pure bookkeeping of a pool. Not thread-safe; the pool holds a lock."""

from __future__ import annotations

import os
from collections import Counter, deque

from .worker import Worker

#: A unit holds its first worker and at most one more, so that a hanging unit leaves the others theirs.
WORKERS_PER_UNIT = 2


class Ticket:
    """A wish for a worker. Once granted, `worker` is set and `wake` (an eventfd) becomes readable."""

    def __init__(self, unit: str, wake: int) -> None:
        self.unit = unit
        self.worker: Worker | None = None
        self._wake = wake

    def grant(self, worker: Worker, at_once: bool) -> None:
        self.worker = worker
        if not at_once:
            os.eventfd_write(self._wake, 1)


class Lending:
    """Idle workers, waiting tickets, and how many workers each unit holds."""

    def __init__(self) -> None:
        self.idle: list[Worker] = []
        self._waiting: deque[Ticket] = deque()
        self._held: Counter[str] = Counter()

    def request(self, unit: str, wake: int) -> Ticket:
        """Grant at once if possible, else queue. Tickets are granted in order of arrival."""
        ticket = Ticket(unit, wake)
        if self.idle and self._held[unit] < WORKERS_PER_UNIT:
            self._lend(ticket, at_once=True)
        else:
            self._waiting.append(ticket)
        return ticket

    def withdraw(self, ticket: Ticket) -> None:
        """Forget a ticket that was not granted."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)

    def take_back(self, unit: str, worker: Worker | None) -> None:
        """The unit holds one worker less; the worker is idle now, unless it is gone."""
        self._held[unit] -= 1
        if worker is not None:
            self.idle.append(worker)
        self.grant()

    def add(self, worker: Worker) -> None:
        self.idle.append(worker)
        self.grant()

    def remove(self, worker: Worker) -> bool:
        """Take a worker out of the idle ones; False when it is lent."""
        if worker in self.idle:
            self.idle.remove(worker)
            return True
        return False

    def grant(self) -> None:
        """Hand idle workers to the tickets that may have one."""
        if not self._waiting:
            return
        still_waiting: deque[Ticket] = deque()
        for ticket in self._waiting:
            if self.idle and self._held[ticket.unit] < WORKERS_PER_UNIT:
                self._lend(ticket, at_once=False)
            else:
                still_waiting.append(ticket)
        self._waiting = still_waiting

    def wanted(self) -> int:
        """How many more workers would be put to use at once."""
        free = Counter({unit: WORKERS_PER_UNIT - held for unit, held in self._held.items()})
        asked = Counter(ticket.unit for ticket in self._waiting)
        return sum(min(count, free.get(unit, WORKERS_PER_UNIT)) for unit, count in asked.items())

    def _lend(self, ticket: Ticket, at_once: bool) -> None:
        self._held[ticket.unit] += 1
        ticket.grant(self.idle.pop(), at_once)
