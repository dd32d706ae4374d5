"""Notifies all channels: one call where something happens, whatever the channels are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ovirt_enforcer.notifications.courier import Courier
from ovirt_enforcer.notifications.engine_events import EngineEvents
from ovirt_enforcer.notifications.kinds import NoticeKind
from ovirt_enforcer.notifications.notice import Notice, Receipt
from ovirt_enforcer.notifications.rate_limit import RateLimit
from ovirt_enforcer.notifications.settings import NotificationSettings
from ovirt_placement.config import EngineSettings


class Notifications:
    """All channels together; nothing here waits for any of them. Without channels nobody is notified."""

    def __init__(
        self,
        couriers: Sequence[Courier] = (),
        engine: str = "",
        settings: NotificationSettings = NotificationSettings(),  # noqa: B008 - it is frozen
    ) -> None:
        """`engine` is the engine's configured name; of the settings the sentences count."""
        self._couriers = tuple(couriers)
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
        wanting = [courier for courier in self._couriers if notice.kind in courier.kinds]
        receipt = Receipt(len(wanting))
        for courier in wanting:
            courier.take(notice, receipt)
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
    couriers = []
    if settings.engine.kinds:
        limit = RateLimit(settings.engine.most_per_hour)
        events = EngineEvents(engine, settings.sentence)
        couriers.append(Courier(events, settings.engine.kinds, count, limit=limit))
    if settings.webhook.url:
        # What it needs takes long to load.
        from ovirt_enforcer.notifications.webhook import Webhook

        limit = RateLimit(settings.webhook.most_per_hour)
        webhook = Webhook(settings.webhook, settings.sentence)
        couriers.append(Courier(webhook, settings.webhook.kinds, count, limit=limit))
    return Notifications(couriers, engine.name, settings)
