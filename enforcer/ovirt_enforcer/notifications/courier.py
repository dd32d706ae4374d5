"""Carries notices to one channel from a thread, so that a receiver that hangs holds up nobody."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection
from typing import Final, Protocol

import stamina

from ovirt_enforcer.notifications.kinds import NoticeKind
from ovirt_enforcer.notifications.notice import Notice, Receipt
from ovirt_service.saying import Complaint, Said

#: More than these do not wait: the oldest is dropped.
_MOST_WAITING: Final = 1000
#: For so long one is tried again and again, and so much time lies between two tries at the most.
_LONGEST_SECONDS: Final = 600.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_FIRST_PAUSE_SECONDS: Final = 0.5

_log = logging.getLogger(__name__)


class NotDelivered(Exception):
    """The receiver is away or busy: later it may be there."""


class Rejected(Exception):
    """The receiver does not want it, and will not later."""


class NumberTaken(Rejected):
    """The receiver has had something else of this number."""


class Channel(Protocol):
    """A way to send somebody a notice."""

    name: str

    def send(self, notice: Notice) -> None:
        """Deliver it, now. Raises `NotDelivered` or `Rejected`."""
        ...


class Courier:
    """The queue before a channel; for any thread."""

    def __init__(
        self,
        channel: Channel,
        kinds: Collection[NoticeKind],
        count: Callable[[str, str], None] = lambda channel, result: None,
        *,
        longest_seconds: float = _LONGEST_SECONDS,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        """`count` is called with the channel and what became of a notice: delivered, failed or dropped."""
        self.kinds = frozenset(kinds)
        self._channel = channel
        self._count = count
        self._longest_seconds = longest_seconds
        self._most_waiting = most_waiting
        self._waiting: deque[tuple[Notice, Receipt]] = deque()
        self._changed = threading.Condition()
        self._complaint = Complaint(
            _log, f"notifications: {channel.name} does not take them", f"notifications: {channel.name} does"
        )
        self._said = Said()
        threading.Thread(target=self._carry, name=f"notifications to {channel.name}", daemon=True).start()

    def take(self, notice: Notice, receipt: Receipt) -> None:
        """Have it delivered, after those that wait; it returns at once."""
        dropped = None
        with self._changed:
            if len(self._waiting) >= self._most_waiting:
                dropped = self._waiting.popleft()
            self._waiting.append((notice, receipt))
            self._changed.notify()
        if dropped is not None:
            self._settle(dropped[1], "dropped")

    def _carry(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                notice, receipt = self._waiting.popleft()
            self._settle(receipt, self._deliver(notice, receipt))

    def _deliver(self, notice: Notice, receipt: Receipt) -> str:
        try:
            self._try(notice)
        except NumberTaken:
            receipt.number_taken = True
            return "failed"
        except Exception as error:  # whatever it is, the others are to be delivered
            if self._said.is_news(notice.kind, str(error)):
                _log.error("notifications: %s for %s is lost: %s", notice.kind, self._channel.name, error)
            return "failed"
        self._complaint.say("")
        self._said.is_over(notice.kind)
        return "delivered"

    def _try(self, notice: Notice) -> None:
        tries = stamina.retry_context(
            on=self._is_worth_another,
            attempts=None,
            timeout=self._longest_seconds,
            wait_initial=_FIRST_PAUSE_SECONDS,
            wait_max=_LONGEST_PAUSE_SECONDS,
        )
        for attempt in tries:
            with attempt:
                self._channel.send(notice)

    def _is_worth_another(self, error: Exception) -> bool:
        if isinstance(error, NotDelivered):
            self._complaint.say(str(error))
            return True
        return False

    def _settle(self, receipt: Receipt, result: str) -> None:
        self._count(self._channel.name, result)
        receipt.settle(result == "delivered")
