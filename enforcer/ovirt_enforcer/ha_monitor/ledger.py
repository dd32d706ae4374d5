"""Keeps what was said of HA reservations, and has it announced on all channels once, whichever process leads.

Each announcement stands in the store, with the number of the engine's event, before it is said. The leader
next says again what may not have been heard, and the engine takes each number once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Final

from ovirt_enforcer import audit
from ovirt_enforcer.ha_monitor.announcing import Announced
from ovirt_enforcer.ha_monitor.verdict import ReservationVerdict
from ovirt_enforcer.notifications.kinds import ABOUT, NoticeKind, Severity
from ovirt_enforcer.notifications.notice import Notice, Receipt, draw_number
from ovirt_enforcer.notifications.notifications import Notifications
from ovirt_placement.store.ha_announcements import Announcement, HaAnnouncementStore

#: What a channel would not take is offered again after this.
_PAUSE_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """What the store holds as far as this epoch of the lease knows, and what was done in it."""

    epoch: int
    #: Read at this moment; None where it must be read again.
    announcements: tuple[Announcement, ...] | None = None
    at: float = 0.0
    receipts: dict[int, Receipt] = field(default_factory=dict)
    #: Numbers that nobody can have sent yet.
    fresh: set[int] = field(default_factory=set)
    #: When what failed is sent again.
    again: dict[int, float] = field(default_factory=dict)


class Ledger:
    """What was said, in the store, and whether it was heard; for one thread.

    Every method raises what stores raise.
    """

    def __init__(
        self,
        store: HaAnnouncementStore,
        notifications: Notifications,
        clock: Callable[[], float],
        epoch: Callable[[], int],
    ) -> None:
        self._store = store
        self._notifications = notifications
        self._clock = clock
        self._epoch = epoch
        self._known = _Known(0)

    def said(self, cluster: str) -> tuple[Announced, ...]:
        """What was said of a cluster, the oldest first."""
        announcements, since_read = self._announcements(), self._clock() - self._known.at
        return tuple(
            Announced(NoticeKind(one.kind), one.age_seconds + since_read)
            for one in announcements
            if one.cluster == cluster
        )

    def open_clusters(self) -> Mapping[str, str]:
        """The names of clusters of which something was said that is not taken back, by their ids."""
        last = {one.cluster: one for one in self._announcements()}
        return {
            cluster: one.facts["cluster"]
            for cluster, one in last.items()
            if one.kind != NoticeKind.HA_ALL_CLEAR
        }

    def write(self, kind: NoticeKind, verdict: ReservationVerdict) -> None:
        """Write down that this is to be said."""
        number, known = draw_number(), self._current()
        settles = kind is not NoticeKind.HA_UNKNOWN
        self._store.announce(
            number=number, cluster=verdict.cluster, kind=kind, facts=verdict.facts, settles=settles
        )
        known.fresh.add(number)
        known.announcements = None
        sentence = self._notifications.sentence(kind, verdict.facts)
        level = logging.INFO if ABOUT[kind].severity is Severity.NORMAL else logging.WARNING
        _log.log(level, "%s", sentence)
        audit.report(kind, sentence, cluster=verdict.cluster, facts=verdict.facts)

    def deliver(self, clusters: Set[str]) -> None:
        """Have said what may not have been heard. `clusters` are those that the engine has."""
        known = self._current()
        for one in self._announcements():
            if one.reported:
                continue
            receipt = known.receipts.get(one.number)
            if receipt is None and known.again.get(one.number, 0.0) <= self._clock():
                receipt = known.receipts[one.number] = self._notifications.send(self._notice(one, clusters))
                known.fresh.discard(one.number)
            if receipt is not None and receipt.over:
                self._settle(one.number, receipt)

    def _notice(self, one: Announcement, clusters: Set[str]) -> Notice:
        return Notice(
            NoticeKind(one.kind),
            one.facts,
            cluster=one.cluster if one.cluster in clusters else None,
            number=one.number,
            fresh=one.number in self._known.fresh,
            written=True,
            at=time.time() - one.age_seconds - (self._clock() - self._known.at),
        )

    def _settle(self, number: int, receipt: Receipt) -> None:
        known = self._known
        if receipt.delivered:
            self._store.mark_reported(number)
            known.announcements = None
        elif receipt.number_taken:
            new = draw_number()
            self._store.renumber(number, new)
            known.fresh.add(new)
            known.announcements = None
        else:
            known.again[number] = self._clock() + _PAUSE_SECONDS
        del known.receipts[number]

    def _announcements(self) -> tuple[Announcement, ...]:
        known = self._current()
        if known.announcements is None:
            known.announcements, known.at = self._store.announcements(), self._clock()
        return known.announcements

    def _current(self) -> _Known:
        """What is known in this epoch: in another one, somebody else may have written and sent."""
        if self._known.epoch != self._epoch():
            self._known = _Known(self._epoch())
        return self._known
