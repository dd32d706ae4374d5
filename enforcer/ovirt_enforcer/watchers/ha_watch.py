"""Watches HA reservations through whole readings of the engine, and says once of each that it is lost."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

import msgspec

from ovirt_enforcer.log import LogText, RetryState, audit, report
from ovirt_enforcer.notices import ABOUT, Notice, NoticeKind, Severity, draw_number
from ovirt_enforcer.notifications import Notifications, Receipt
from ovirt_enforcer.planners import Call, CallFailed, with_snapshot
from ovirt_enforcer.watchers.verdict import ReservationState, ReservationVerdict, judge_all, off, unknown
from ovirt_placement.config import HaSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.store.enforcer.leader import Announcement, HaAnnouncementStore
from ovirt_service.errors import UserError

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
    kind, last = _KINDS[state], said[-1] if said else None
    if kind is NoticeKind.HA_ALERT:  # that nothing is known takes no alert back
        last = next((one for one in reversed(said) if one.kind is not NoticeKind.HA_UNKNOWN), None)
    if kind is NoticeKind.HA_ALL_CLEAR:
        is_news = last is not None and last.kind is not kind
    else:
        is_news = last is None or last.kind is not kind or last.age_seconds >= _DAY_SECONDS
    holds = kind is NoticeKind.HA_ALERT or held_seconds >= hold(said, kind, hold_seconds)
    return kind if is_news and holds else None


def hold(said: Sequence[Announced], kind: NoticeKind, hold_seconds: float) -> float:
    """For how many seconds a state must have held before it is reported."""
    lately = sum(one.kind is kind and one.age_seconds < _DAY_SECONDS for one in said)
    return float(min(_LONGEST_HOLD_SECONDS, hold_seconds * 2 ** min(lately, _MOST_DOUBLINGS)))


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
    #: When what failed is sent again.
    again: dict[int, float] = field(default_factory=dict)


@dataclass(eq=False)
class Announcements:
    """What was said, in the store, and whether it was heard; for one thread.

    Every method raises what stores raise.
    """

    store: HaAnnouncementStore
    notifications: Notifications
    clock: Callable[[], float]
    epoch: Callable[[], int]
    _known: _Known = field(default_factory=lambda: _Known(0), init=False)

    def said(self, cluster: str) -> tuple[Announced, ...]:
        """What was said of a cluster, the oldest first."""
        announcements, since_read = self._announcements(), self.clock() - self._known.at
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
        self.store.announce(
            number=draw_number(),
            cluster=verdict.cluster,
            kind=kind,
            facts=verdict.facts,
            settles=kind is not NoticeKind.HA_UNKNOWN,
        )
        self._current().announcements = None
        sentence = self.notifications.sentence(kind, verdict.facts)
        level = logging.INFO if ABOUT[kind].severity is Severity.NORMAL else logging.WARNING
        _log.log(level, "%s", sentence)
        audit(kind, sentence, cluster=verdict.cluster, facts=verdict.facts)

    def deliver(self, clusters: Set[str]) -> None:
        """Have said what may not have been heard. `clusters` are those that the engine has."""
        known = self._current()
        for one in self._announcements():
            if one.reported:
                continue
            receipt = known.receipts.get(one.number)
            if receipt is None and known.again.get(one.number, 0.0) <= self.clock():
                receipt = known.receipts[one.number] = self.notifications.send(self._notice(one, clusters))
            if receipt is not None and receipt.over:
                self._settle(one.number, receipt)

    def _notice(self, one: Announcement, clusters: Set[str]) -> Notice:
        return Notice(
            NoticeKind(one.kind),
            one.facts,
            cluster=one.cluster if one.cluster in clusters else None,
            number=one.number,
            at=time.time() - one.age_seconds - (self.clock() - self._known.at),
        )

    def _settle(self, number: int, receipt: Receipt) -> None:
        known = self._known
        if receipt.delivered:
            self.store.mark_reported(number)
            known.announcements = None
        else:
            known.again[number] = self.clock() + _PAUSE_SECONDS
        del known.receipts[number]

    def _announcements(self) -> tuple[Announcement, ...]:
        known = self._current()
        if known.announcements is None:
            known.announcements, known.at = self.store.announcements(), self.clock()
        return known.announcements

    def _current(self) -> _Known:
        """What is known in this epoch: in another one, another process may have written and sent."""
        if self._known.epoch != self.epoch():
            self._known = _Known(self.epoch())
        return self._known


#: A check that takes longer is ended, and nothing is known.
_LONGEST_CHECK_SECONDS: Final = 120.0
#: For this many times as long as a check took none is made, whatever happens.
_REST: Final = 2.0


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is to be judged, and in which epoch of the lease it was read."""

    snapshot: Snapshot
    clusters: tuple[str, ...]
    epoch: int
    #: How old its statistics were, in seconds; None if there were none.
    statistics_age: float | None


class _Standing(NamedTuple):
    """The verdict on a cluster, and since when its state is the same."""

    verdict: ReservationVerdict
    since: float


@dataclass(eq=False)
class HaMonitor:
    """Follows the HA reservation of each cluster that has one; for one thread.

    Checks run in a process of their own: here nothing takes longer than a word with the store.
    """

    announced: Announcements
    settings: HaSettings
    #: For so long a good state, and one that is not known, must have held before it is reported.
    hold_seconds: float
    #: Statistics older than this prove nothing.
    statistics_seconds: float
    #: The longest pause after a failure.
    longest_pause: float
    clock: Callable[[], float]
    #: Of the lease.
    epoch: Callable[[], int]
    #: Of the reading that is being shown.
    statistics_age: Callable[[], float | None]
    #: Given the verdicts of each check.
    report: Callable[[Collection[ReservationVerdict]], None]
    #: What was read last and is not judged yet, and what is being judged, since when.
    _next: _Reading | None = field(default=None, init=False)
    _judged: _Reading | None = field(default=None, init=False)
    _call: Call[tuple[ReservationVerdict, ...]] | None = field(default=None, init=False)
    _began: float = field(default=0.0, init=False)
    _rested: float = field(default=0.0, init=False)
    #: Of the engine, as they were read last.
    _clusters: frozenset[str] = field(default=frozenset(), init=False)
    _standing: dict[str, _Standing] = field(default_factory=dict, init=False)
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

    def _tend(self) -> None:
        self._collect()
        self._begin_check()
        self._announce()

    def answers(self) -> list[Connection]:
        """What can be waited for: ready once a check is done."""
        return [] if self._call is None or self._call.answer is None else [self._call.answer]

    def close(self) -> None:
        """End what is under way."""
        if self._call is not None:
            self._call.cancel()

    def _begin_check(self) -> None:
        """Have the latest reading judged, unless the check before it goes on or was costly."""
        reading = self._next
        if reading is None or self._call is not None or self.clock() < self._rested:
            return
        self._next, age = None, reading.statistics_age
        if not reading.clusters:
            self._take_verdicts(reading, ())
        elif age is None or age > self.statistics_seconds:
            why = "there are no statistics yet" if age is None else f"the statistics are {age:.0f} s old"
            self._take_verdicts(
                reading, (unknown(reading.snapshot, cluster, why) for cluster in reading.clusters)
            )
        else:
            encoded, question = msgspec.msgpack.encode(reading.snapshot), (reading.clusters, self.settings)
            self._call = with_snapshot(judge_all, encoded, question, _LONGEST_CHECK_SECONDS)
            self._call.begin()
            self._judged, self._began = reading, self.clock()

    def _collect(self) -> None:
        """Take what a check came to."""
        call, reading = self._call, self._judged
        if call is None or reading is None or not call.over():
            return
        self._call = None
        try:
            verdicts = call.result()
            busy = sum(verdict.seconds for verdict in verdicts)
        except (CallFailed, UserError) as error:
            report(LogText.HA_CHECK_FAILED, error=error)
            verdicts = tuple(unknown(reading.snapshot, one, str(error)) for one in reading.clusters)
            busy = self.clock() - self._began
        self._rested = self.clock() + _REST * busy
        self._take_verdicts(reading, verdicts)

    def _take_verdicts(self, reading: _Reading, verdicts: Iterable[ReservationVerdict]) -> None:
        """Take verdicts on all clusters that are watched; those of another epoch say nothing any more."""
        if reading.epoch != self.epoch():
            return
        if self._stood_in != reading.epoch:
            self._standing, self._stood_in = {}, reading.epoch
        found = {verdict.cluster: verdict for verdict in verdicts}
        judged = tuple(found.values())
        for cluster, name in self.announced.open_clusters().items():
            found.setdefault(cluster, off(cluster, name))
        before, self._standing, now = self._standing, {}, self.clock()
        for cluster, verdict in found.items():
            same = cluster in before and before[cluster].verdict.state is verdict.state
            self._standing[cluster] = _Standing(verdict, before[cluster].since if same else now)
        self.report(judged)

    def _announce(self) -> None:
        """Write down what is to be said by now, and have said what was written down."""
        if self._stood_in == self.epoch():
            for cluster, one in self._standing.items():
                held = self.clock() - one.since
                kind = due(self.announced.said(cluster), one.verdict.state, held, self.hold_seconds)
                if kind is not None:
                    self.announced.write(kind, one.verdict)
        self.announced.deliver(self._clusters)
