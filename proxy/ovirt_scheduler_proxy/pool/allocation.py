"""Who may use which worker next: the pure bookkeeping of a pool."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from .worker import Worker

#: A unit holds its first worker and at most one more, so that a hanging unit leaves the others theirs.
WORKERS_PER_UNIT = 2


class Ticket:
    """A wish for a worker. `granted` is called once, at once or later, unless the ticket is withdrawn."""

    __slots__ = ("granted", "unit")

    def __init__(self, unit: str, granted: Callable[[Worker], None]) -> None:
        self.unit = unit
        self.granted = granted


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
