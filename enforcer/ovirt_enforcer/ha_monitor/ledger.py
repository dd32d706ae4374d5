"""Decides what is to be said of HA reservations, once each, and has it said once, whichever process leads."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from ovirt_enforcer import audit
from ovirt_enforcer.ha_monitor.verdict import ReservationState, ReservationVerdict
from ovirt_enforcer.notifications.courier import Notice, Receipt, draw_number
from ovirt_enforcer.notifications.kinds import ABOUT, NoticeKind, Severity
from ovirt_enforcer.notifications.notifications import Notifications
from ovirt_placement.store.ha_announcements import Announcement, HaAnnouncementStore

_DAY_SECONDS: Final = 24 * 3600.0
#: No verdict must hold for longer than this before it is reported.
_LONGEST_HOLD_SECONDS: Final = 3600.0
_MOST_DOUBLINGS: Final = 16
_KINDS: Final = {
    ReservationState.SAFE: NoticeKind.HA_ALL_CLEAR,
    ReservationState.OFF: NoticeKind.HA_ALL_CLEAR,
    ReservationState.UNSAFE: NoticeKind.HA_ALERT,
    ReservationState.UNKNOWN: NoticeKind.HA_UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Announced:
    """Something that was said of a cluster, and how long ago."""

    kind: NoticeKind
    age_seconds: float


def due(
    said: Sequence[Announced], state: ReservationState, held_seconds: float, hold_seconds: float
) -> NoticeKind | None:
    """What is to be said now of a cluster that has been in this state for so long; None if nothing.

    `said` is what was said of it, the oldest first. An alert is sent at once; what takes it back, and that
    nothing is known, once it has held: for `hold_seconds`, doubled with each further such notice of the last
    day. A state that lasts is reported again after a day, but for a good one.

    That an alert has ended promises that all is "safe" again (`answers.promises`), or watched no more.
    """
    kind = _KINDS[state]
    if not _is_news(said, kind):
        return None
    if kind is NoticeKind.HA_ALERT or held_seconds >= hold(said, kind, hold_seconds):
        return kind
    return None


def hold(said: Sequence[Announced], kind: NoticeKind, hold_seconds: float) -> float:
    """For how many seconds a state must have held before it is reported."""
    lately = sum(one.kind is kind and one.age_seconds < _DAY_SECONDS for one in said)
    return float(min(_LONGEST_HOLD_SECONDS, hold_seconds * 2 ** min(lately, _MOST_DOUBLINGS)))


def _is_news(said: Sequence[Announced], kind: NoticeKind) -> bool:
    last = said[-1] if said else None
    if kind is NoticeKind.HA_ALL_CLEAR:
        return last is not None and last.kind is not kind
    if kind is NoticeKind.HA_ALERT:
        last = _last_verdict(said)
    return last is None or last.kind is not kind or last.age_seconds >= _DAY_SECONDS


def _last_verdict(said: Sequence[Announced]) -> Announced | None:
    """The last that was known: that nothing is known takes no alert back."""
    return next((one for one in reversed(said) if one.kind is not NoticeKind.HA_UNKNOWN), None)


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
