"""What the enforcer reports without being asked: as events of the engine, and as alerts of a webhook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec

from ovirt_enforcer.notifications.delivery import (
    Delivery,
    NotDelivered,
    Notice,
    NumberTaken,
    RateLimit,
    Receipt,
    Rejected,
    draw_number,
)
from ovirt_enforcer.notifications.kinds import ABOUT, NoticeKind, NotificationSettings, WebhookSettings
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineAway, EngineConnection, connect
from ovirt_placement.engine.connection.exchanges import Trust, post
from ovirt_placement.engine.connection.failures import Unanswered
from ovirt_placement.engine.writing.events import add_event
from ovirt_service.addresses import redacted, shown
from ovirt_service.errors import UserError

#: By chance a number may be taken already; so often in a row, something else is wrong.
_MOST_NUMBERS: Final = 8


class EngineEvents:
    """The engine's log; for one thread."""

    name = "engine"

    def __init__(
        self, engine: EngineSettings, sentence: Callable[[NoticeKind, Mapping[str, str]], str]
    ) -> None:
        """It has a connection of its own: nothing waits for its requests. Raises `UserError`."""
        self._connection: EngineConnection = connect(engine)
        self._sentence = sentence
        #: Numbers that were sent without an answer: the engine may have them.
        self._uncertain: set[int] = set()

    def send(self, notice: Notice) -> None:
        """Add the event once. Raises `NotDelivered` or `Rejected`.

        A fresh number that the engine has already is another event's, so another one is drawn. One that
        may have been sent before is our own. `NumberTaken` is raised where its owner must draw.
        """
        for _ in range(_MOST_NUMBERS):
            if self._add(notice) or not notice.fresh or notice.number in self._uncertain:
                self._uncertain.clear()
                return
            if notice.written:
                raise NumberTaken(f"the engine has another event of number {notice.number}")
            notice = replace(notice, number=draw_number())
        raise Rejected("the engine has events of all numbers that were drawn")

    def _add(self, notice: Notice) -> bool:
        try:
            return add_event(
                self._connection,
                number=notice.number,
                severity=ABOUT[notice.kind].severity.value,
                description=self._sentence(notice.kind, notice.facts),
                cluster=notice.cluster,
                vm=notice.vm,
            )
        except EngineAway as away:
            self._uncertain.add(notice.number)
            raise NotDelivered(str(away)) from None
        except UserError as refused:
            raise Rejected(str(refused)) from None


class Notifications:
    """All channels together; nothing here waits for any of them. There may be none."""

    def __init__(
        self,
        deliveries: Sequence[Delivery] = (),
        engine: str = "",
        settings: NotificationSettings = NotificationSettings(),  # noqa: B008 - it is frozen
    ) -> None:
        """`engine` is the engine's configured name; of the settings the sentences count."""
        self._deliveries = tuple(deliveries)
        self._settings = settings
        self._engine = engine

    def report(
        self, kind: NoticeKind, *, cluster_id: str | None = None, vm_id: str | None = None, **facts: str
    ) -> None:
        """Report that something happened. The ids are those of what the engine is to show it with.

        A process that ends takes along what is not delivered yet.
        """
        self.send(Notice(kind, facts, cluster_id, vm_id))

    def send(self, notice: Notice) -> Receipt:
        """Report it, and learn later whether all channels have it."""
        notice = self._completed(notice)
        wanting = [delivery for delivery in self._deliveries if notice.kind in delivery.kinds]
        receipt = Receipt(len(wanting))
        for delivery in wanting:
            delivery.take(notice, receipt)
        return receipt

    def sentence(self, kind: NoticeKind, facts: Mapping[str, str]) -> str:
        """The words in which this is reported."""
        return self._settings.sentence(kind, self._complete(facts))

    def _completed(self, notice: Notice) -> Notice:
        carried = tuple(map(self._completed, notice.carried))
        return replace(notice, facts=self._complete(notice.facts), carried=carried)

    def _complete(self, facts: Mapping[str, str]) -> Mapping[str, str]:
        return {"engine": self._engine, **facts}


def notifications_of(
    settings: NotificationSettings, engine: EngineSettings, count: Callable[[str, str], None]
) -> Notifications:
    """What the configuration asks for. `count` is called with the channel and what became of each notice.

    Raises `UserError` if the engine or a file that is named cannot be used.
    """
    deliveries = []
    if settings.engine.kinds:
        limit = RateLimit(settings.engine.most_per_hour)
        events = EngineEvents(engine, settings.sentence)
        deliveries.append(Delivery(events, settings.engine.kinds, count, limit=limit))
    if settings.webhook.url:
        limit = RateLimit(settings.webhook.most_per_hour)
        webhook = Webhook(settings.webhook, settings.sentence)
        deliveries.append(Delivery(webhook, settings.webhook.kinds, count, limit=limit))
    return Notifications(deliveries, engine.name, settings)


#: What is said of an alert that ends as another thing is reported, which has a sentence of its own.
_OVER: Final = {
    "HaReservationUnknown": "cluster {cluster}: it is known whether its HA reservation is satisfied"
}
#: The severity that an alert of each name has, whether it begins or ends: it is one of its labels.
_SEVERITIES: Final = {about.begins: about.severity for about in ABOUT.values() if about.begins}


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
        self._trust = Trust(None if settings.ca_file is None else str(settings.ca_file), insecure=False)
        self._headers = {"Content-Type": "application/json"}
        if settings.token_file is not None:
            self._headers["Authorization"] = f"Bearer {_token(settings)}"

    def send(self, notice: Notice) -> None:
        """Post its alerts. Raises `NotDelivered` or `Rejected`."""
        alerts = msgspec.json.encode(list(self._alerts(notice)))
        try:
            status, _, content = post(
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
            raise Rejected(f"{shown(self._url)} answers {status}: {text[:200]}")

    def _alerts(self, notice: Notice) -> Iterator[dict[str, Any]]:
        """Those of what a notice reports together, each by itself, in one post."""
        if not notice.carried or notice.kind is NoticeKind.HELD_BACK:
            yield from alerts_of(notice, self._sentence(notice.kind, notice.facts))
        for one in notice.carried:
            yield from self._alerts(one)


def alerts_of(notice: Notice, sentence: str) -> list[dict[str, Any]]:
    """The alerts of a notice, each of which begins or ends."""
    about = ABOUT[notice.kind]
    found = [_alert(name, notice, _ending_text(name, notice, sentence), notice.at) for name in about.ends]
    if about.begins is not None:
        found.append(_alert(about.begins, notice, sentence, notice.at + about.lasts))
    return found


def _ending_text(name: str, notice: Notice, sentence: str) -> str:
    return _OVER[name].format(cluster=notice.facts["cluster"]) if name in _OVER else sentence


def _alert(name: str, notice: Notice, sentence: str, ends: float) -> dict[str, Any]:
    return {
        "labels": {
            "alertname": name,
            "severity": _SEVERITIES[name].value,
            "engine": notice.facts["engine"],
            "service": "ovirt-enforcer",
            **{label: notice.facts[label] for label in ABOUT[notice.kind].labels},
        },
        "annotations": {"summary": sentence, "kind": notice.kind.value, **notice.facts},
        "startsAt": _moment(notice.at),
        "endsAt": _moment(ends),
    }


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def _token(settings: WebhookSettings) -> str:
    try:
        return settings.token_file.read_text().strip() if settings.token_file is not None else ""
    except OSError as error:
        raise UserError(
            f"[enforcer.notifications.webhook] token_file: {settings.token_file}: {error.strerror}"
        ) from None
