"""What the enforcer reports without being asked: events of the engine, and alerts of a webhook."""

import logging
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import stamina

from ovirt_enforcer.log import LIMITED, Notice, NoticeKind
from ovirt_enforcer.settings import EngineEventSettings, NotificationSettings, WebhookSettings
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.exchanges import Trust, ask_once
from ovirt_placement.engine.connection.failures import EngineAway, Unanswered
from ovirt_placement.engine.events import add_event
from ovirt_service.errors import UserError
from ovirt_service.files import open_regular
from ovirt_service.http.addresses import redacted, shown
from ovirt_service.log import Complaint
from ovirt_service.process import at_end
from ovirt_service.repetition import Said


class Receipt(tuple[Future[bool], ...]):
    """What becomes of a notice, by channel: whether it was delivered; for any thread."""

    __slots__ = ()

    @property
    def over(self) -> bool:
        return all(one.done() for one in self)

    @property
    def delivered(self) -> bool:
        return self.over and all(one.result() for one in self)


_DAY_AND_MORE, _HOUR = 25 * 3600.0, 3600.0


class RateLimit:
    """A stock that each notice takes one of, and that fills up with the time; for one thread."""

    def __init__(self, most_per_hour: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most_per_hour
        self._clock = clock
        self._stock = float(most_per_hour)
        self._filled_at = clock()

    def spend_token(self) -> bool:
        now = self._clock()
        filled = (now - self._filled_at) * self._most / _HOUR
        self._stock, self._filled_at = min(float(self._most), self._stock + filled), now
        if self._stock < 1.0:
            return False
        self._stock -= 1.0
        return True

    def seconds_until_next(self) -> float:
        """When there will be one again, as of the last `take`."""
        return max(0.0, 1.0 - self._stock) * _HOUR / self._most


#: More than these do not wait: the oldest is dropped.
_MOST_WAITING: Final = 1000
#: For so long one is tried again and again, and so much time lies between two tries at the most.
_LONGEST_SECONDS: Final = 600.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_FIRST_PAUSE_SECONDS: Final = 0.5
_log = logging.getLogger(__name__)


class NotDelivered(Exception):
    """The receiver is away or busy: later it may be there."""


class Channel(Protocol):
    """A way to send a notice."""

    name: str

    def send(self, notice: Notice) -> None:
        """Deliver it, now. Raises `NotDelivered`, or `UserError` if the receiver will never take it."""
        ...


class Delivery:
    """The queue before a channel; for any thread."""

    def __init__(
        self,
        channel: Channel,
        kinds: Collection[NoticeKind],
        count: Callable[[str, str], None] = lambda channel, result: None,
        *,
        limit: RateLimit | None = None,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        """`count` is called with the channel and what became of a notice: delivered, failed or dropped.

        And with held_back, before one of these, where it waits since the limit is reached.
        """
        self.kinds = frozenset(kinds)
        self._channel = channel
        self._count = count
        self._most_waiting = most_waiting
        self._limit = limit
        #: Notices, and who learns what becomes of each: those that are next, and those beyond the limit.
        self._waiting: deque[tuple[Notice, Future[bool]]] = deque()
        self._held: deque[tuple[Notice, Future[bool]]] = deque()
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

    def queue_notice(self, notice: Notice) -> Future[bool]:
        """Whether it was delivered, once that is known."""
        dropped, settled = None, Future[bool]()
        with self._changed:
            if len(self._waiting) >= self._most_waiting:
                _, dropped = self._waiting.popleft()
            self._waiting.append((notice, settled))
            self._changed.notify()
        if dropped is not None:
            self._settle(dropped, "dropped")
        return settled

    def _carry(self) -> None:
        while True:
            with self._changed:
                while not (taken := [] if self._closed else self._next_batch()):
                    if self._closed:
                        return
                    limit = self._limit if self._held else None
                    self._changed.wait(limit.seconds_until_next() if limit else None)
            result = self._deliver(_together([notice for notice, _ in taken]))
            for _, settled in taken:
                self._settle(settled, result)

    def _next_batch(self) -> list[tuple[Notice, Future[bool]]]:
        """What was held back goes, if it may, before what came later."""
        if self._held and self._may_go():
            held = [*self._held]
            self._held.clear()
            return held
        while self._waiting:
            notice, settled = self._waiting.popleft()
            if notice.kind not in LIMITED or (not self._held and self._may_go()):
                return [(notice, settled)]
            self._count(self._channel.name, "held_back")
            if len(self._held) >= self._most_waiting:
                self._settle(self._held.popleft()[1], "dropped")
            self._held.append((notice, settled))
        return []

    def _may_go(self) -> bool:
        return self._limit is None or self._limit.spend_token()

    def _deliver(self, notice: Notice) -> str:
        tries = stamina.retry_context(
            on=self._is_worth_another,
            attempts=None,
            timeout=_LONGEST_SECONDS,
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
        return isinstance(error, NotDelivered)

    def _settle(self, settled: Future[bool], result: str) -> None:
        self._count(self._channel.name, result)
        settled.set_result(result == "delivered")


def _together(held: Sequence[Notice]) -> Notice:
    """One notice for all that waited, the oldest first; what waited alone is itself."""
    if len(held) == 1:
        return held[0]
    counts = Counter(notice.kind.value for notice in held)
    kinds = ", ".join(f"{number} {kind}" for kind, number in counts.most_common())
    facts = {"engine": held[0].facts["engine"], "count": str(len(held)), "kinds": kinds}
    return Notice(NoticeKind.HELD_BACK, facts, carried=tuple(held))


class EngineEvents:
    name = "engine"

    def __init__(
        self, engine: EngineSettings, sentence: Callable[[NoticeKind, Mapping[str, str]], str]
    ) -> None:
        """It has a connection of its own: nothing waits for its requests. Raises `UserError`."""
        self._connection: EngineConnection = EngineConnection(engine)
        self._sentence = sentence

    def send(self, notice: Notice) -> None:
        """Add the event, unless the engine has it. Raises what `Channel.send` raises."""
        try:
            add_event(
                self._connection,
                number=notice.number,
                severity=notice.kind.severity.value,
                description=self._sentence(notice.kind, notice.facts),
                cluster=notice.cluster,
                vm=notice.vm,
            )
        except EngineAway as away:
            raise NotDelivered(str(away)) from None


class Notifications:
    """All channels together; nothing here waits for any of them. There may be none."""

    def __init__(
        self,
        deliveries: Sequence[Delivery] = (),
        engine: str = "",
        settings: NotificationSettings = NotificationSettings(),  # noqa: B008 - it is frozen
    ) -> None:
        """`engine` is the engine's configured name; of the settings the sentences count."""
        self._deliveries = deliveries
        self._settings = settings
        self._engine = engine

    def report(
        self, kind: NoticeKind, *, cluster_id: str | None = None, vm_id: str | None = None, **facts: str
    ) -> None:
        """Report it, with the ids of what the engine is to show it with; what waits ends with the process."""
        self.send(Notice(kind, facts, cluster_id, vm_id))

    def send(self, notice: Notice) -> Receipt:
        """Report it, and learn later whether all channels have it."""
        notice = self._with_engine(notice)
        wanting = (delivery for delivery in self._deliveries if notice.kind in delivery.kinds)
        return Receipt(delivery.queue_notice(notice) for delivery in wanting)

    def sentence(self, kind: NoticeKind, facts: Mapping[str, str]) -> str:
        return self._settings.sentence(kind, {"engine": self._engine, **facts})

    def _with_engine(self, notice: Notice) -> Notice:
        carried = tuple(map(self._with_engine, notice.carried))
        return replace(notice, facts={"engine": self._engine, **notice.facts}, carried=carried)


def notifications_of(
    settings: NotificationSettings, engine: EngineSettings, count: Callable[[str, str], None]
) -> Notifications:
    """What the configuration asks for; `count` gets what became of each notice. Raises `UserError`."""
    channels: list[tuple[Channel, EngineEventSettings | WebhookSettings]] = []
    if settings.engine.kinds:
        channels.append((EngineEvents(engine, settings.sentence), settings.engine))
    if settings.webhook.url:
        channels.append((Webhook(settings.webhook, settings.sentence), settings.webhook))
    deliveries = (
        Delivery(channel, own.kinds, count, limit=RateLimit(own.most_per_hour)) for channel, own in channels
    )
    return Notifications(tuple(deliveries), engine.name, settings)


#: What is said of an alert that ends as another thing is reported, which has a sentence of its own.
_OVER: Final = {
    "HaReservationUnknown": "cluster {cluster}: it is known whether its HA reservation is satisfied"
}
#: The severity that an alert of each name has, whether it begins or ends: it is one of its labels.
_SEVERITIES: Final = {kind.begins: kind.severity for kind in NoticeKind if kind.begins}
#: For so long it lasts unless another kind ends it: what lasts is reported again after a day, all else ends.
_LASTING: Final = {"PlanWaits", *(name for kind in NoticeKind for name in kind.ends.split())}


def alerts_of(notice: Notice, sentence: str) -> list[dict[str, Any]]:
    kind, found = notice.kind, []
    for name in kind.ends.split():
        text = _OVER[name].format(**notice.facts) if name in _OVER else sentence
        found.append(_alert(name, notice, text, notice.at))
    if kind.begins:
        lasts = _DAY_AND_MORE if kind.begins in _LASTING else _HOUR
        found.append(_alert(kind.begins, notice, sentence, notice.at + lasts))
    return found


def _alert(name: str, notice: Notice, sentence: str, ends: float) -> dict[str, Any]:
    return {
        "labels": {
            "alertname": name,
            "severity": _SEVERITIES[name].value,
            "engine": notice.facts["engine"],
            "service": "ovirt-enforcer",
            **{label: notice.facts[label] for label in notice.kind.by.split()},
        },
        "annotations": {"summary": sentence, "kind": notice.kind.value, **notice.facts},
        "startsAt": _moment(notice.at),
        "endsAt": _moment(ends),
    }


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


#: Source: RFC 6750, 2.1, whose characters are fewer still.
_TOKEN: Final = re.compile(r"[!-~]{1,65536}")


def _read_token(file: Path) -> str:
    """What is no token would be refused in words that have it, and stand in the log. Raises `UserError`."""
    place = f"[enforcer.notifications.webhook] token_file: {file}"
    try:
        with open(open_regular(file), encoding="utf-8", errors="replace") as opened:
            token = opened.read(1 << 17).strip()
    except OSError as error:
        raise UserError(f"{place}: {error.strerror}") from None
    if _TOKEN.fullmatch(token) is None:
        raise UserError(f"{place}: holds no token: write it alone, as one word without blanks or accents")
    return token


class Webhook:
    """A receiver of alerts; for one thread."""

    name = "webhook"

    def __init__(
        self, settings: WebhookSettings, sentence: Callable[[NoticeKind, Mapping[str, str]], str]
    ) -> None:
        """Raises `UserError` if a file that is named cannot be read."""
        self._url = settings.url
        self._sentence = sentence
        self._seconds = settings.timeout_seconds
        self._trust = Trust(settings.ca_file, insecure=False)
        self._headers = {"Content-Type": "application/json"}
        if settings.token_file is not None:
            self._headers["Authorization"] = f"Bearer {_read_token(settings.token_file)}"

    def send(self, notice: Notice) -> None:
        """Post its alerts. Raises what `Channel.send` raises."""
        alerts = msgspec.json.encode(list(self._alerts(notice)))
        try:
            status, _, content = ask_once(
                self._url, alerts, self._headers, trust=self._trust, seconds=self._seconds
            )
        except Unanswered as error:
            # A receiver that has said what it does with it need not have said all.
            if error.begun is None:
                raise NotDelivered(f"{shown(self._url)}: {redacted(str(error), self._url)}") from None
            status, content = error.begun, b""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
            raise NotDelivered(f"{shown(self._url)} answers {status}")
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            text = redacted(content.decode(errors="replace"), self._url)
            raise UserError(f"{shown(self._url)} answers {status}: {text[:200]}")

    def _alerts(self, notice: Notice) -> Iterator[dict[str, Any]]:
        if not notice.carried or notice.kind is NoticeKind.HELD_BACK:
            yield from alerts_of(notice, self._sentence(notice.kind, notice.facts))
        for one in notice.carried:
            yield from self._alerts(one)
