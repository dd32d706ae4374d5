"""Watches HA reservations through whole readings of the engine, and says once of each that it is lost."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

import msgspec

from ovirt_enforcer.log import LogText, Notice, NoticeKind, RetryState, Severity, audit, draw_number, report
from ovirt_enforcer.notifications import Notifications, Receipt
from ovirt_enforcer.planners import Call, CallFailed
from ovirt_enforcer.watchers.verdict import ReservationState, ReservationVerdict, judge_all, off, unknown
from ovirt_placement.config import HaSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.store.enforcer.leader import Announcement, HaAnnouncementStore
from ovirt_service.daemon import BackOff
from ovirt_service.errors import UserError

_DAY_SECONDS: Final = 24 * 3600.0
#: No verdict must hold for longer than this before it is reported.
_LONGEST_HOLD_SECONDS: Final = 3600.0
_KINDS: Final = {
    ReservationState.SAFE: NoticeKind.HA_ALL_CLEAR,
    ReservationState.OFF: NoticeKind.HA_ALL_CLEAR,
    ReservationState.UNSAFE: NoticeKind.HA_ALERT,
    ReservationState.UNKNOWN: NoticeKind.HA_UNKNOWN,
}
#: What a channel would not take is offered again after this.
_PAUSE_SECONDS: Final = 60.0
#: A check that takes longer is ended, and nothing is known.
_LONGEST_CHECK_SECONDS: Final = 120.0
#: For this many times as long as a check took none is made in any case.
_REST: Final = 2.0

_log = logging.getLogger(__name__)


def due(
    said: Sequence[Announcement], state: ReservationState, held_seconds: float, hold_seconds: float
) -> NoticeKind | None:
    """What is to be said now of a cluster that has been in this state for so long; None if nothing.

    `said` is what was said of it, the oldest first. An alert is sent at once; what takes it back, and that
    nothing is known, once it has held: for `hold_seconds`, doubled with each further such notice of the last
    day. A state that lasts is reported again after a day, but for a good one.

    That an alert has ended promises that all is "safe" again (`answers.promises`), or watched no more.
    """
    kind = _KINDS[state]
    # That nothing is known takes no alert back.
    counts = [one for one in said if kind is not NoticeKind.HA_ALERT or one.kind != NoticeKind.HA_UNKNOWN]
    last = counts[-1] if counts else None
    if kind is NoticeKind.HA_ALL_CLEAR:
        is_news = last is not None and last.kind != kind
    else:
        is_news = last is None or last.kind != kind or last.age_seconds >= _DAY_SECONDS
    lately = sum(one.kind == kind and one.age_seconds < _DAY_SECONDS for one in said)
    hold = BackOff(hold_seconds, _LONGEST_HOLD_SECONDS).pause_after(lately + 1)
    return kind if is_news and (kind is NoticeKind.HA_ALERT or held_seconds >= hold) else None


@dataclass(eq=False)
class Announcements:
    """What was said, in the store, and whether it was heard; for one thread. Raises what stores raise."""

    store: HaAnnouncementStore
    notifications: Notifications
    clock: Callable[[], float]
    #: Of the lease: in another one, another process may have written and sent.
    epoch: Callable[[], int]
    _epoch: int = field(default=0, init=False)
    #: What the store held at a moment; None where it must be read again.
    _read: tuple[tuple[Announcement, ...], float] | None = field(default=None, init=False)
    _receipts: dict[int, Receipt] = field(default_factory=dict, init=False)
    _again: dict[int, float] = field(default_factory=dict, init=False)

    def said(self) -> tuple[Announcement, ...]:
        """All that was said, the oldest first, with its age as of now."""
        if self._epoch != self.epoch():
            self._epoch, self._read, self._receipts, self._again = self.epoch(), None, {}, {}
        if self._read is None:
            self._read = self.store.announcements(), self.clock()
        found, at = self._read
        since = self.clock() - at
        return tuple(msgspec.structs.replace(one, age_seconds=one.age_seconds + since) for one in found)

    def write(self, kind: NoticeKind, verdict: ReservationVerdict) -> None:
        """Write down that this is to be said."""
        cluster, facts = verdict.cluster, verdict.facts
        settles = kind is not NoticeKind.HA_UNKNOWN
        self.store.announce(number=draw_number(), cluster=cluster, kind=kind, facts=facts, settles=settles)
        self._read = None
        sentence = self.notifications.sentence(kind, facts)
        level = logging.INFO if kind.severity is Severity.NORMAL else logging.WARNING
        _log.log(level, "%s", sentence)
        audit(kind, sentence, cluster=cluster, facts=facts)

    def deliver(self, clusters: Set[str]) -> None:
        """Have said what may not have been heard. `clusters` are those that the engine has."""
        for announcement in self.said():
            number, receipt = announcement.number, self._receipts.get(announcement.number)
            if announcement.reported:
                continue
            if receipt is None and self._again.get(number, 0.0) <= self.clock():
                cluster = announcement.cluster if announcement.cluster in clusters else None
                at = time.time() - announcement.age_seconds
                kind, facts = NoticeKind(announcement.kind), announcement.facts
                notice = Notice(kind, facts, cluster=cluster, number=number, at=at)
                receipt = self._receipts[number] = self.notifications.send(notice)
            if receipt is not None and receipt.over:
                if receipt.delivered:
                    self.store.mark_reported(number)
                    self._read = None
                else:
                    self._again[number] = self.clock() + _PAUSE_SECONDS
                del self._receipts[number]


class _Reading(NamedTuple):
    """What is to be judged, and in which epoch of the lease it was read."""

    snapshot: Snapshot
    clusters: tuple[str, ...]
    epoch: int
    #: How old its statistics were, in seconds; None if there were none.
    statistics_age: float | None


@dataclass(eq=False)
class HaMonitor:
    """Follows the HA reservation of each cluster that has one, by checks in a process; for one thread."""

    announced: Announcements
    settings: HaSettings
    #: For so long a good state, and one that is not known, must have held before it is reported.
    hold_seconds: float
    #: Statistics older than this prove nothing.
    statistics_seconds: float
    longest_pause: float
    clock: Callable[[], float]
    #: Of the lease.
    epoch: Callable[[], int]
    #: Of the reading that is being shown.
    statistics_age: Callable[[], float | None]
    report: Callable[[Collection[ReservationVerdict]], None]
    #: What was read last and is not judged yet, and what is being judged, with when that began.
    _next: _Reading | None = field(default=None, init=False)
    _judging: tuple[_Reading, Call[tuple[ReservationVerdict, ...]], float] | None = field(
        default=None, init=False
    )
    _rested: float = field(default=0.0, init=False)
    #: Of the engine, as they were read last.
    _clusters: frozenset[str] = field(default=frozenset(), init=False)
    #: The verdict on each cluster, and since when its state is the same; in this epoch.
    _standing: dict[str, tuple[ReservationVerdict, float]] = field(default_factory=dict, init=False)
    _stood_in: int = field(default=0, init=False)
    _retry_state: RetryState = field(default_factory=lambda: RetryState("HA watch"), init=False)

    def observe(self, snapshot: Snapshot) -> None:
        """Take a whole reading; it is judged as soon as the check before it is done."""
        watched = tuple(cluster.id for cluster in snapshot.clusters if cluster.ha_reservation)
        self._next = _Reading(snapshot, watched, self.epoch(), self.statistics_age())
        self._clusters = frozenset(snapshot.cluster_by_id)
        self.tend()

    def tend(self) -> None:
        """Go on with what can be done now; what fails is logged and done later."""
        self._retry_state.attempt(self._tend, self.clock, self.longest_pause)

    def answers(self) -> list[Connection]:
        """What can be waited for: ready once a check is done."""
        answer = None if self._judging is None else self._judging[1].answer
        return [] if answer is None else [answer]

    def close(self) -> None:
        if self._judging is not None:
            self._judging[1].cancel()

    def _tend(self) -> None:
        self._collect()
        self._begin_check()
        if self._stood_in == self.epoch():
            for cluster, (verdict, since) in self._standing.items():
                said = [one for one in self.announced.said() if one.cluster == cluster]
                kind = due(said, verdict.state, self.clock() - since, self.hold_seconds)
                if kind is not None:
                    self.announced.write(kind, verdict)
        self.announced.deliver(self._clusters)

    def _collect(self) -> None:
        if self._judging is None or not self._judging[1].over():
            return
        (reading, call, began), self._judging = self._judging, None
        try:
            verdicts = call.result()
            busy = sum(verdict.seconds for verdict in verdicts)
        except (CallFailed, UserError) as error:
            report(LogText.HA_CHECK_FAILED, error=error)
            verdicts = tuple(unknown(reading.snapshot, one, str(error)) for one in reading.clusters)
            busy = self.clock() - began
        self._rested = self.clock() + _REST * busy
        self._adopt_verdicts(reading, verdicts)

    def _begin_check(self) -> None:
        """Have the latest reading judged, unless the check before it goes on or was costly."""
        reading = self._next
        if reading is None or self._judging is not None or self.clock() < self._rested:
            return
        self._next, age = None, reading.statistics_age
        if reading.clusters and age is not None and age <= self.statistics_seconds:
            encoded = msgspec.msgpack.encode(reading.snapshot)
            call = Call(judge_all, encoded, (reading.clusters, self.settings), _LONGEST_CHECK_SECONDS)
            call.begin()
            self._judging = reading, call, self.clock()
            return
        why = "there are no statistics yet" if age is None else f"the statistics are {age:.0f} s old"
        self._adopt_verdicts(reading, (unknown(reading.snapshot, one, why) for one in reading.clusters))

    def _adopt_verdicts(self, reading: _Reading, verdicts: Iterable[ReservationVerdict]) -> None:
        """Take verdicts on all clusters that are watched; those of another epoch say nothing any more."""
        if reading.epoch != self.epoch():
            return
        before = self._standing if self._stood_in == reading.epoch else {}
        judged = tuple(verdicts)
        # Of which something was said that is not taken back, and that are watched no more.
        last = {one.cluster: one for one in self.announced.said()}
        gone = [
            off(cluster, announcement.facts["cluster"])
            for cluster, announcement in last.items()
            if announcement.kind != NoticeKind.HA_ALL_CLEAR
            and cluster not in {each.cluster for each in judged}
        ]
        self._standing, self._stood_in, now = {}, reading.epoch, self.clock()
        for verdict in (*judged, *gone):
            was, since = before.get(verdict.cluster, (None, now))
            same = was is not None and was.state is verdict.state
            self._standing[verdict.cluster] = verdict, since if same else now
        self.report(judged)
