"""Sends notices to one channel from a background thread: a receiver that hangs delays nothing else."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

import stamina

from ovirt_enforcer.notifications.kinds import LIMITED, NoticeKind
from ovirt_service.log import Complaint, Said
from ovirt_service.process import at_end

_LARGEST_NUMBER: Final = 0x7FFFFFFF


def draw_number() -> int:
    """Draw a number for an event: the engine takes each only once, for ever, so no counter would do.

    By it the engine knows an event that is sent again; that another one has it is hardly possible.
    """
    return 1 + secrets.randbelow(_LARGEST_NUMBER)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that happened, with the facts that sentences speak of."""

    kind: NoticeKind
    facts: Mapping[str, str]
    #: Ids, where the engine has what it is about.
    cluster: str | None = None
    vm: str | None = None
    #: What it reports together, each by itself; none if it reports one thing.
    carried: tuple[Notice, ...] = ()
    number: int = field(default_factory=draw_number)
    #: In seconds since the epoch.
    at: float = field(default_factory=time.time)


class Receipt:
    """What became of a notice; for any thread."""

    def __init__(self, channels: int) -> None:
        self._lock = threading.Lock()
        self._waiting = channels
        self._failed = False

    def settle(self, delivered: bool) -> None:
        """Take note that a channel has delivered it, or has given up."""
        with self._lock:
            self._waiting -= 1
            self._failed |= not delivered

    @property
    def over(self) -> bool:
        """Whether no channel is about to deliver it any more."""
        return self._waiting == 0

    @property
    def delivered(self) -> bool:
        """Whether all have it."""
        return self.over and not self._failed


_HOUR_SECONDS: Final = 3600.0


class RateLimit:
    """A stock that each notice takes one of, and that fills up with the time; for one thread."""

    def __init__(self, most_per_hour: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most_per_hour
        self._clock = clock
        self._stock = float(most_per_hour)
        self._filled_at = clock()

    def take_token(self) -> bool:
        """Take one, if there is any."""
        now = self._clock()
        filled = (now - self._filled_at) * self._most / _HOUR_SECONDS
        self._stock, self._filled_at = min(float(self._most), self._stock + filled), now
        if self._stock < 1.0:
            return False
        self._stock -= 1.0
        return True

    def seconds_until_next(self) -> float:
        """When there will be one again, as of the last `take`."""
        return max(0.0, 1.0 - self._stock) * _HOUR_SECONDS / self._most


def together(held: Sequence[Notice]) -> Notice:
    """One notice for all that waited, the oldest first; what waited alone is itself."""
    if len(held) == 1:
        return held[0]
    counts = Counter(notice.kind.value for notice in held)
    facts = {
        "engine": held[0].facts["engine"],
        "count": str(len(held)),
        "kinds": ", ".join(f"{number} {kind}" for kind, number in counts.most_common()),
    }
    return Notice(NoticeKind.HELD_BACK, facts, carried=tuple(held))


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


class Channel(Protocol):
    """A way to send a notice."""

    name: str

    def send(self, notice: Notice) -> None:
        """Deliver it, now. Raises `NotDelivered` or `Rejected`."""
        ...


class _Addressed(NamedTuple):
    """A notice, and who learns what becomes of it."""

    notice: Notice
    receipt: Receipt


class Delivery:
    """The queue before a channel; for any thread."""

    def __init__(
        self,
        channel: Channel,
        kinds: Collection[NoticeKind],
        count: Callable[[str, str], None] = lambda channel, result: None,
        *,
        limit: RateLimit | None = None,
        longest_seconds: float = _LONGEST_SECONDS,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        """`count` is called with the channel and what became of a notice: delivered, failed or dropped.

        And with held_back, before one of these, where it waits since the limit is reached.
        """
        self.kinds = frozenset(kinds)
        self._channel = channel
        self._count = count
        self._longest_seconds = longest_seconds
        self._most_waiting = most_waiting
        self._limit = limit
        self._waiting: deque[_Addressed] = deque()
        #: Beyond the limit.
        self._held: deque[_Addressed] = deque()
        self._changed = threading.Condition()
        self._complaint = Complaint(
            _log, f"notifications: {channel.name} does not take them", f"notifications: {channel.name} does"
        )
        self._said = Said()
        self._closed = False
        threading.Thread(target=self._carry, name=f"notifications to {channel.name}", daemon=True).start()
        at_end(self.close)

    def close(self) -> None:
        """Deliver nothing more; what is being delivered may still arrive."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def queue_notice(self, notice: Notice, receipt: Receipt) -> None:
        """Have it delivered, after those that wait; it returns at once."""
        dropped = None
        with self._changed:
            if len(self._waiting) >= self._most_waiting:
                dropped = self._waiting.popleft()
            self._waiting.append(_Addressed(notice, receipt))
            self._changed.notify()
        if dropped is not None:
            self._settle(dropped.receipt, "dropped")

    def _carry(self) -> None:
        while True:
            with self._changed:
                while not (next_ones := [] if self._closed else self._take_next()):
                    if self._closed:
                        return
                    self._changed.wait(
                        self._limit.seconds_until_next() if self._limit and self._held else None
                    )
            result = self._deliver(together([one.notice for one in next_ones]))
            for one in next_ones:
                self._settle(one.receipt, result)

    def _take_next(self) -> list[_Addressed]:
        """What is to be delivered now: what was held back, if it may go, before what came later."""
        if self._held and self._may_go():
            held = [*self._held]
            self._held.clear()
            return held
        while self._waiting:
            one = self._waiting.popleft()
            if one.notice.kind not in LIMITED or (not self._held and self._may_go()):
                return [one]
            self._count(self._channel.name, "held_back")
            if len(self._held) >= self._most_waiting:
                self._settle(self._held.popleft().receipt, "dropped")
            self._held.append(one)
        return []

    def _may_go(self) -> bool:
        return self._limit is None or self._limit.take_token()

    def _deliver(self, notice: Notice) -> str:
        tries = stamina.retry_context(
            on=self._is_worth_another,
            attempts=None,
            timeout=self._longest_seconds,
            wait_initial=_FIRST_PAUSE_SECONDS,
            wait_max=_LONGEST_PAUSE_SECONDS,
        )
        try:
            for attempt in tries:
                with attempt:
                    self._channel.send(notice)
        except Exception as error:  # whatever it is, the others are to be delivered
            if self._said.is_news(notice.kind, str(error)):
                _log.error("notifications: %s for %s is lost: %s", notice.kind, self._channel.name, error)
            return "failed"
        self._complaint.say("")
        self._said.is_over(notice.kind)
        return "delivered"

    def _is_worth_another(self, error: Exception) -> bool:
        if isinstance(error, NotDelivered):
            self._complaint.say(str(error))
            return True
        return False

    def _settle(self, receipt: Receipt, result: str) -> None:
        self._count(self._channel.name, result)
        receipt.settle(result == "delivered")
