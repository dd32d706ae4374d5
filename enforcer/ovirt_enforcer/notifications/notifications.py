"""What the enforcer reports without being asked: as events of the engine, and as alerts of a webhook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec

from ovirt_enforcer.notifications.delivery import (
    Channel,
    Delivery,
    NotDelivered,
    Notice,
    RateLimit,
    Receipt,
    Rejected,
)
from ovirt_enforcer.notifications.kinds import (
    ABOUT,
    EngineEventSettings,
    NoticeKind,
    NotificationSettings,
    WebhookSettings,
)
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineAway, EngineConnection, connect
from ovirt_placement.engine.connection.exchanges import Trust, ask_once
from ovirt_placement.engine.connection.failures import Unanswered
from ovirt_placement.engine.events import add_event
from ovirt_service.addresses import redacted, shown
from ovirt_service.errors import UserError


class EngineEvents:
    """The engine's log; for one thread."""

    name = "engine"

    def __init__(
        self, engine: EngineSettings, sentence: Callable[[NoticeKind, Mapping[str, str]], str]
    ) -> None:
        """It has a connection of its own: nothing waits for its requests. Raises `UserError`."""
        self._connection: EngineConnection = connect(engine)
        self._sentence = sentence

    def send(self, notice: Notice) -> None:
        """Add the event, unless the engine has it. Raises `NotDelivered` or `Rejected`."""
        try:
            add_event(
                self._connection,
                number=notice.number,
                severity=ABOUT[notice.kind].severity.value,
                description=self._sentence(notice.kind, notice.facts),
                cluster=notice.cluster,
                vm=notice.vm,
            )
        except EngineAway as away:
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
            delivery.queue_notice(notice, receipt)
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
    channels: list[tuple[Channel, EngineEventSettings | WebhookSettings]] = []
    if settings.engine.kinds:
        channels.append((EngineEvents(engine, settings.sentence), settings.engine))
    if settings.webhook.url:
        channels.append((Webhook(settings.webhook, settings.sentence), settings.webhook))
    deliveries = [
        Delivery(channel, own.kinds, count, limit=RateLimit(own.most_per_hour)) for channel, own in channels
    ]
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
        if (file := settings.token_file) is not None:
            try:
                self._headers["Authorization"] = f"Bearer {file.read_text().strip()}"
            except OSError as error:
                section = "[enforcer.notifications.webhook] token_file"
                raise UserError(f"{section}: {file}: {error.strerror}") from None

    def send(self, notice: Notice) -> None:
        """Post its alerts. Raises `NotDelivered` or `Rejected`."""
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
    found = []
    for name in about.ends:
        text = _OVER[name].format(**notice.facts) if name in _OVER else sentence
        found.append(_alert(name, notice, text, notice.at))
    if about.begins is not None:
        found.append(_alert(about.begins, notice, sentence, notice.at + about.lasts))
    return found


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
