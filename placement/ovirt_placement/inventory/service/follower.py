"""Follows the engine: asks what has happened, reads again what that speaks of, keeps one view of it all."""

import logging
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import MappingProxyType

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.events import EngineEvent, read_events
from ovirt_placement.engine.vms import Detail
from ovirt_placement.inventory.on_demand import NO_DEMANDS, NO_STATISTICS, Demands, Needed
from ovirt_placement.inventory.publication import Moments
from ovirt_placement.inventory.service.events import (
    ENGINE_STARTED,
    HOST_TAGS_CHANGED,
    TAGS_CHANGED,
    Heard,
    Reported,
    reported_by,
    reported_start,
    vms_named,
)
from ovirt_placement.inventory.service.readings import PATIENCE_SECONDS, Rereading
from ovirt_placement.inventory.service.schedule import (
    ReconciliationScope,
    Required,
    Rereads,
    Subject,
    SubjectKind,
    places,
)
from ovirt_placement.inventory.service.view import Reading, View
from ovirt_placement.model import Snapshot

#: An event may appear so much later than one with a higher id; what appears later still is left to the
#: reconciliation.
LATEST_SECONDS = 5.0

_Mark = tuple[int, float]


class FeedInterrupted(Exception):
    """Events were missed, or the engine has not the history any more that it had: all must be read again."""


class Feed:
    """Follows the event log from a first page on.

    Each page is asked for from `after` on, which lies a little before the last id, so that it must hold at
    least one event that is known: if it does not, the log was replaced or more happened than a page holds.
    """

    def __init__(self, page: Sequence[EngineEvent], now: float) -> None:
        """Start after this page, oldest event first: what is in it has happened before."""
        self._seen = {event.id: (now, _mark(event)) for event in page}
        self._anchor = 0
        if page:
            # By the engine's clock: what is that much older than the newest has no successors to come.
            old = [event.id for event in page if event.time <= page[-1].time - LATEST_SECONDS]
            self._anchor = max(old, default=0)

    @property
    def after(self) -> int:
        """Ask for events with higher ids than this."""
        return max(0, self._anchor - 1)

    @property
    def known(self) -> Set[int]:
        """Events that a page need not hold, wherever they are asked for: they were given out."""
        return self._seen.keys() - {self._anchor}

    def take_page(self, page: Sequence[EngineEvent], now: float) -> tuple[EngineEvent, ...]:
        """Return the events of a page that are new, lowest id first.

        Raises `FeedInterrupted` if the page does not follow on what is known.
        """
        if self._anchor:
            known = self._seen[self._anchor][1]
            if not any(event.id == self._anchor and _mark(event) == known for event in page):
                raise FeedInterrupted(
                    "the engine's events do not go on where they ended: its log was replaced, or too"
                    " much happened at once"
                )
        new = tuple(event for event in page if event.id not in self._seen)
        self._seen.update((event.id, (now, _mark(event))) for event in new)
        self._advance(now)
        return new

    def _advance(self, now: float) -> None:
        """Move on to the highest id after which no lower one is to be expected any more."""
        settled = [number for number, (seen, _) in self._seen.items() if seen <= now - LATEST_SECONDS]
        anchor = max(settled, default=0)
        if anchor > self._anchor:
            self._anchor = anchor
            self._seen = {number: seen for number, seen in self._seen.items() if number >= anchor}


def _mark(event: EngineEvent) -> _Mark:
    """What distinguishes events with the same id, in a log that was restored from a backup."""
    return event.code, event.time


#: This many are looked for at once, by one search; the others with the next.
MOST_AT_ONCE = 80
#: A VM that the engine did not have is not looked for again so soon.
REMEMBERED_SECONDS = 2.0
#: More than this many wait for their turn without success: somebody makes them up.
_MOST_WAITING = 1_000
#: What the engine's ids, and those of a state file, are made of. Anything else would mean more in a search.
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")

_NEVER = float("-inf")


class UnknownVms:
    """Who is to be looked for, and when who was; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: dict[str, None] = {}
        #: Those that are being looked for.
        self._taken: tuple[str, ...] = ()
        self._looked: Mapping[str, float] = MappingProxyType({})

    def want(self, vm: str) -> None:
        """Have a VM looked for that is not known."""
        with self._lock:
            if vm not in self._taken:
                self._wanted[vm] = None

    def take_wanted(self) -> tuple[str, ...]:
        """Take those that are to be looked for now, the longest wanted first."""
        with self._lock:
            self._taken = tuple(self._wanted)[:MOST_AT_ONCE]
            for vm in self._taken:
                del self._wanted[vm]
            return self._taken

    def looked(self, vms: tuple[str, ...], now: float) -> None:
        """Remember that these were looked for, and that what was found is known."""
        before = self._looked
        recent = {vm: at for vm, at in before.items() if at > now - REMEMBERED_SECONDS}
        self._looked = {**recent, **dict.fromkeys(vms, now)}
        with self._lock:
            self._taken = ()

    def is_known(self, vm: str, not_before: float) -> bool:
        """Whether the VM was looked for at about this moment, or is none to look for."""
        if _ID.fullmatch(vm) is None or len(self._wanted) >= _MOST_WAITING:
            return True
        return self._looked.get(vm, _NEVER) > not_before - REMEMBERED_SECONDS


#: This many events are asked for at a time; if more have happened, all is read again.
PAGE = 1000
#: After such a silence the engine may have been started again, or replaced.
_LONGEST_SILENCE_SECONDS = 10.0

_log = logging.getLogger(__name__)


class Follower:
    """One view of the engine, brought up to date by `turn`; larger readings are handed in from outside.

    `turn` and everything that it leads to belongs to one thread at a time; `hand_in` to any.
    """

    def __init__(
        self,
        connection: EngineConnection,
        clock: Callable[[], float],
        heard: Heard,
        *,
        tagged: bool = False,
        came_late: Callable[[], None] = lambda: None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """`tagged`: tags of hosts name failure domains, and are read.

        A turn waits `patience_seconds` for what it reads by itself; `came_late` is called, in any thread,
        when there is an answer for the next turn.
        """
        self._connection, self._clock, self._heard = connection, clock, heard
        self._view = View(tagged=tagged)
        self._rereads = Rereads()
        self._rereading = Rereading(connection, clock, self._view, self._rereads, came_late, patience_seconds)
        #: To be called between two turns.
        self.take_sought = self._rereading.take_sought
        self._feed: Feed | None = None
        self._history: tuple[EngineEvent, ...] = ()
        self._handed_in: deque[Reading] = deque()
        self.unknown_vms = UnknownVms()
        #: The first turn of those that failed since the last successful one.
        self._failing_since: float | None = None
        #: What keys and rules need; may be set between two turns.
        self.demands = NO_DEMANDS
        #: Since when larger readings must have begun; all must have been read for the view to be believed.
        self.required = {scope: Required() for scope in ReconciliationScope}
        self._statistics_lacked = NO_STATISTICS
        self._read_at = _NEVER

    @property
    def believable(self) -> bool:
        """Whether all was read since the feed of events began."""
        whole = self.required[ReconciliationScope.WHOLE]
        return whole.read_at >= whole.since > _NEVER

    @property
    def moments(self) -> Moments:
        required, demands = self.required, self._view.demands
        return Moments(
            self._read_at,
            required[ReconciliationScope.WHOLE].read_at,
            required[ReconciliationScope.STATISTICS].read_at,
            details_at=required[ReconciliationScope.DETAILS].complete_at if demands.details else _NEVER,
            searches_at=required[ReconciliationScope.SEARCHES].complete_at if demands.searches else _NEVER,
        )

    @property
    def needs(self) -> Demands:
        """What the larger readings must take in, besides the topology."""
        return self._view.demands._replace(statistics=self._view.statistics_needed)

    def snapshot(self) -> Snapshot:
        """Return the view as it is; the same object until something changes."""
        return self._view.snapshot()

    @property
    def lacking(self) -> Needed:
        """What is needed of statistics and tags and has not been read since it is."""
        return self._view.statistics_lacking

    def hand_in(self, reading: Reading) -> None:
        """Leave a larger reading for the next turn."""
        self._handed_in.append(reading)

    def turn(self) -> None:
        """Bring the view up to date; raises what `EngineConnection.get` raises, and may be called again."""
        began = self._clock()
        if self._failing_since is None:
            self._failing_since = began
        elif began > self._failing_since + _LONGEST_SILENCE_SECONDS:
            self._feed = None
        self._want(began)
        for event in self._news(began):
            self._note_event(event, began)
        self._absorb(self._clock())
        self._rereading.seek(self.unknown_vms.take_wanted() if self.believable else ())
        self._rereading.read_due()
        self._failing_since = None
        if self.believable:
            self._read_at = began if self._rereading.keeps_up else self._read_at

    def follow_up(self) -> None:
        """Read what the next turn shows, and nobody waits for; raises what `EngineConnection.get` raises."""
        if self.believable:
            self._rereading.read_hosts()

    def _want(self, now: float) -> None:
        """Have read what keys, rules and clusters need."""
        before = self._view.demands
        if self.demands.details & ~before.details:
            self.required[ReconciliationScope.DETAILS].want_more(now)
        if self.demands.searches - before.searches:
            self.required[ReconciliationScope.SEARCHES].want_more(now)
        self._view.want(self.demands)
        lacking = self._view.statistics_lacking
        if lacking.lacks(self._statistics_lacked):
            self.required[ReconciliationScope.STATISTICS].since = now
        self._statistics_lacked = lacking

    def _news(self, began: float) -> tuple[EngineEvent, ...]:
        if (feed := self._feed) is not None:
            page = read_events(self._connection, after=feed.after, at_most=PAGE, but=feed.known)
            try:
                return feed.take_page(page, began)
            except FeedInterrupted as interrupted:
                _log.info("reads everything again: %s", interrupted)
        self._history = read_events(self._connection, at_most=PAGE)
        self._feed = Feed(self._history, began)
        self._distrust(self._clock())
        return ()

    def _distrust(self, now: float) -> None:
        """Have everything read again: what happened before this moment may have been missed."""
        for scope in (ReconciliationScope.WHOLE, ReconciliationScope.DETAILS, ReconciliationScope.SEARCHES):
            self.required[scope].since = now
        self._rereading.policies.forget()

    def _note_event(self, event: EngineEvent, now: float) -> None:
        reported_start(event, now, self._heard)
        if event.code in ENGINE_STARTED:
            self._distrust(now)
        if event.code in TAGS_CHANGED and Detail.OWNER in self._view.demands.details:
            self.required[ReconciliationScope.DETAILS].since = now
        if event.code in (*TAGS_CHANGED, *HOST_TAGS_CHANGED) and self._view.statistics_needed.tags:
            self.required[ReconciliationScope.STATISTICS].since = now
        if event.code in TAGS_CHANGED or any(True for _ in reported_by(event)):
            self.required[ReconciliationScope.SEARCHES].since = now
        before = None if event.vm is None else self._view.vm(event.vm)
        self._view.report(event, now)
        for reported in reported_by(event):
            self._ask_for(reported, now)
        detail, names = vms_named(event)
        if detail & self._view.demands.details:
            for vm in self._view.vms_named(names):
                self._rereads.ask(Subject(SubjectKind.VM, vm), now)
        if (named := event.vm) is not None:
            self._rereads.ask_for_hosts({event.host} | places(before) | places(self._view.vm(named)), now)

    def _ask_for(self, reported: Reported, now: float) -> None:
        for subject in self._meant(reported.subject):
            if reported.effect is None:
                self._rereads.ask(subject, now)
            else:
                self._rereads.await_effect(subject, reported.effect, now)
        if reported.with_vms:
            for vm in self._view.vms_on(reported.subject.id):
                self._rereads.ask(Subject(SubjectKind.VM, vm), now)

    def _meant(self, subject: Subject) -> Iterable[Subject]:
        if subject.kind is SubjectKind.NETWORKS and Detail.NICS not in self._view.demands.details:
            return ()
        if subject.kind is not SubjectKind.CLUSTER or subject.id:
            return (subject,)
        return tuple(Subject(SubjectKind.CLUSTER, cluster) for cluster in self._view.cluster_ids)

    def _absorb(self, now: float) -> None:
        while self._handed_in:
            reading = self._handed_in.popleft()
            for subject in self._view.absorb(reading, now):
                self._rereads.ask(subject, now)
            demands = self._view.demands
            if reading.details is not None:
                complete = demands.details in reading.details.read
            elif reading.searches is not None:
                complete = demands.searches <= {(one.of, one.text) for one in reading.searches}
            else:
                complete = True
            self.required[reading.scope].record_reading(reading.began, now, complete=complete)
            if reading.whole is not None:
                for event in self._history:
                    self._view.report(event, now)
                self._history = ()
