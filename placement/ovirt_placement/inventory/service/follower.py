"""Follows the engine: asks what has happened, reads again what that speaks of, keeps one view of it all.

Of single objects, one that takes long holds up no other. Only the asking happens in threads. What is answered
is put into the view by the thread that takes the turns, in that turn or, if it came late, in the next; an
answer that is older than what is known by then counts for nothing, and the object is read again.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from ovirt_placement.engine.connection.client import EngineConnection, at_most
from ovirt_placement.engine.connection.dialogues import Dialogue, Dialogues
from ovirt_placement.engine.events import EngineEvent, read_events
from ovirt_placement.engine.policies import PolicyReader
from ovirt_placement.engine.topology import LONGEST_SEARCH, find_vms
from ovirt_placement.engine.vms import Detail
from ovirt_placement.inventory.on_demand import NO_DEMANDS, NO_STATISTICS, Span
from ovirt_placement.inventory.publication import Moments
from ovirt_placement.inventory.service import events
from ovirt_placement.inventory.service.attempts import Asked, LateSubjects
from ovirt_placement.inventory.service.schedule import (
    BRIEFLY,
    LATER_SECONDS,
    ONCE,
    SOON_SECONDS,
    Effect,
    Reconciliations,
    ReconciliationScope,
    Rereads,
    Subject,
    SubjectKind,
    UnknownVms,
    memory_hosts,
)
from ovirt_placement.inventory.service.view import Reading, View, reread
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.snapshot import HOST_TAGS
from ovirt_service.errors import UserError

#: This many events are asked for at a time; if more have happened, all is read again.
PAGE = 1000
#: After such a silence the engine may have been started again, or replaced.
_LONGEST_SILENCE_SECONDS = 10.0
#: So long a turn waits for an answer; one that comes later is taken in when it is there.
PATIENCE_SECONDS = 1.0
#: A search for several that takes this many times as long is given up, and each is asked for by itself.
_SEARCH_PATIENCE = 5.0
#: If the engine takes long about more objects than these, it is no longer a matter of some objects.
_MOST_LATE = 4
#: While VMs come and go, the memory of their hosts is read so often after a turn, and so seldom within one.
_MEMORY_SECONDS, _LONGEST_MEMORY_SECONDS = 1.5, 3.0
_NEVER = float("-inf")

_log = logging.getLogger(__name__)


class Follower:
    """One view of the engine, brought up to date by `turn`; larger readings are handed in from outside.

    `turn` and everything that it leads to belongs to one thread at a time; `hand_in` to any.
    """

    def __init__(
        self,
        connection: EngineConnection,
        clock: Callable[[], float],
        heard: events.Heard,
        larger: Reconciliations,
        *,
        tagged: bool = False,
        came_late: Callable[[], None] = lambda: None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """`larger` takes what larger readings must be made; `tagged`: tags of hosts name failure domains.

        A turn waits `patience_seconds` for what it reads by itself; `came_late` is called, in any thread,
        when there is an answer for the next turn.
        """
        self._connection, self._clock, self._heard, self._larger = connection, clock, heard, larger
        self._view = View(tagged=tagged)
        self._rereads = Rereads()
        self._policies = PolicyReader()
        self._dialogues: Dialogues[Asked] = Dialogues(patience_seconds=patience_seconds, came_late=came_late)
        self._search_seconds = _SEARCH_PATIENCE * patience_seconds
        self._late = LateSubjects()
        #: When hosts were last read by their ids.
        self._memory_at = _NEVER
        self._feed: events.Feed | None = None
        self._history: tuple[EngineEvent, ...] = ()
        self._handed_in: deque[Reading] = deque()
        self.unknown_vms = UnknownVms()
        #: The first turn of those that failed since the last successful one.
        self._failing_since: float | None = None
        #: What keys and rules need; may be set between two turns.
        self.demands = NO_DEMANDS
        #: What the larger readings must take in besides the topology; to be read in any thread.
        self.needs = NO_DEMANDS
        #: What is needed of statistics and tags and has not been read since it is.
        self.lacking = NO_STATISTICS
        self._read_at = _NEVER

    @property
    def believable(self) -> bool:
        """Whether all was read since the feed of events began."""
        whole = self._larger[ReconciliationScope.WHOLE]
        return whole.read_at >= whole.since > _NEVER

    @property
    def moments(self) -> Moments:
        larger, demands = self._larger, self._view.demands
        return Moments(
            self._read_at,
            larger[ReconciliationScope.WHOLE].read_at,
            larger[ReconciliationScope.STATISTICS].read_at,
            details_at=larger[ReconciliationScope.DETAILS].read_at if demands.details else _NEVER,
            searches_at=larger[ReconciliationScope.SEARCHES].read_at if demands.searches else _NEVER,
        )

    def snapshot(self) -> Snapshot:
        """Return the view as it is; the same object until something changes."""
        return self._view.snapshot()

    def hand_in(self, reading: Reading) -> None:
        """Leave a larger reading for the next turn."""
        self._handed_in.append(reading)

    def turn(self) -> None:
        """Bring the view up to date, again after an error; errors of answers that came late are logged."""
        began = self._clock()
        if self._failing_since is None:
            self._failing_since = began
        self._want(began)
        news = self._news(began, silent=began > self._failing_since + _LONGEST_SILENCE_SECONDS)
        for event in news:
            self._note_event(event, began)
        self._note_hosts([event for event in news if event.vm is None and event.host is not None], began)
        while self._handed_in:
            self._absorb(self._handed_in.popleft(), self._clock())
        self._seek()
        # VMs first, for those that came or went name hosts.
        self._begin_reading(SubjectKind.VM, self._due(SubjectKind.VM, SOON_SECONDS))
        self._settle()
        self._begin_hosts(_LONGEST_MEMORY_SECONDS)
        self._begin_clusters()
        for kind in (SubjectKind.LABELS, SubjectKind.NETWORKS):
            self._begin_reading(kind, self._due(kind))
        self._settle()
        self._want_statistics(self._clock())
        self._failing_since = None
        # All that is due is known, but for a few objects about which the engine takes long.
        if self.believable and sum(len(asked.ids) for asked in self._dialogues.late) <= _MOST_LATE:
            self._read_at = began

    def follow_up(self) -> None:
        """Read what the next turn shows, and no reader waits for: hosts that VMs have come to or left.

        Raises as `turn` does.
        """
        if self.believable:
            self._begin_hosts(_MEMORY_SECONDS)
            self._settle()

    def _want(self, now: float) -> None:
        before, wanted = self._view.demands, self.demands
        self._view.want(wanted)
        self.needs = wanted._replace(statistics=self.needs.statistics)
        if wanted.details & ~before.details:
            self._larger[ReconciliationScope.DETAILS].require(now, more=True)
        if wanted.searches - before.searches:
            self._larger[ReconciliationScope.SEARCHES].require(now, more=True)

    def _want_statistics(self, now: float) -> None:
        self.needs = self.needs._replace(statistics=self._view.statistics_needed)
        lacking = self._view.statistics_lacking
        if lacking - self.lacking:
            self._larger[ReconciliationScope.STATISTICS].require(now)
        self.lacking = lacking

    def _news(self, began: float, *, silent: bool) -> tuple[EngineEvent, ...]:
        """What has happened since the last turn; nothing after a silence or a gap, and all is read again."""
        feed = self._feed
        if feed is not None and not silent:
            page = read_events(self._connection, after=feed.after, at_most=PAGE, but=feed.known)
            try:
                return feed.read_page(page, began)
            except events.FeedInterrupted as interrupted:
                _log.info("reads everything again: %s", interrupted)
        self._history = read_events(self._connection, at_most=PAGE)
        if feed is not None and not feed.is_continued_by(self._history):
            self._view.forget_reports()
        self._feed = events.Feed(self._history, began)
        self._distrust(self._clock())
        return ()

    def _distrust(self, now: float) -> None:
        """Have everything read again: what happened before this moment may have been missed."""
        for scope in (ReconciliationScope.WHOLE, ReconciliationScope.DETAILS, ReconciliationScope.SEARCHES):
            self._larger[scope].require(now)
        self._policies.forget()

    def _note_event(self, event: EngineEvent, now: float) -> None:
        events.reported_start(event, now, self._heard)
        code, demands, reported = event.code, self.demands, events.reported_by(event)
        if code in events.ENGINE_STARTED:
            self._distrust(now)
        if code in events.TAGS_CHANGED and Detail.OWNER in demands.details:
            self._larger[ReconciliationScope.DETAILS].require(now)
        if code in events.TAGS_CHANGED | events.HOST_TAGS_CHANGED and HOST_TAGS in self.needs.statistics:
            self._larger[ReconciliationScope.STATISTICS].require(now)
        if demands.searches and (code in events.TAGS_CHANGED or reported is not None):
            self._larger[ReconciliationScope.SEARCHES].require(now)
        before = memory_hosts(self._view.vms.get(event.vm or ""))
        self._view.report(event, now)
        if reported is not None:
            self._ask_for(*reported, now)
        detail, names = events.vms_named(event)
        names = names if detail & demands.details else ()
        for vm in self._view.vms.values() if names else ():
            if vm.name in names:
                self._rereads.ask(Subject(SubjectKind.VM, vm.id), now)
        if code in events.MEMBERSHIPS_CHANGED:
            self._ask_for_groups({event.cluster}, now)
        if event.vm is not None:
            after = memory_hosts(self._view.vms.get(event.vm))
            self._rereads.ask_for_hosts({event.host} | before | after, now)

    def _note_hosts(self, news: Sequence[EngineEvent], now: float) -> None:
        """Read the VMs again that change with hosts of which these events speak."""
        hosts = {event.host for event in news}
        lost = {event.host for event in news if event.code in events.WITH_ITS_VMS}
        for vm in self._view.vms.values() if hosts else ():
            # The engine cancels migrations to a host that is deactivated, and logs nothing of that.
            comes = vm.status == "migrating" and (vm.migrating_to is None or vm.migrating_to in hosts)
            if comes or vm.host in lost:
                self._rereads.ask(Subject(SubjectKind.VM, vm.id), now)

    def _ask_for(self, subject: Subject, effect: Effect | None, now: float) -> None:
        if subject == Subject(SubjectKind.CLUSTER):
            for cluster in self._view.cluster_ids:
                self._rereads.ask(Subject(SubjectKind.CLUSTER, cluster), now)
        elif effect is not None:
            self._rereads.await_effect(subject, effect, now)
        elif subject.kind is not SubjectKind.NETWORKS or Detail.NICS in self.demands.details:
            self._rereads.ask(subject, now)

    def _ask_for_groups(self, clusters: Iterable[str | None], now: float) -> None:
        for cluster in filter(None, clusters):
            self._rereads.ask(Subject(SubjectKind.CLUSTER, cluster), now, BRIEFLY)
        self._rereads.ask(Subject(SubjectKind.LABELS), now, BRIEFLY)

    def _absorb(self, reading: Reading, now: float) -> None:
        for subject in self._view.absorb(reading, now):
            self._rereads.ask(subject, now)
        complete, demands = True, self._view.demands
        if reading.details is not None:
            complete = demands.details in reading.details.read
        elif reading.searches is not None:
            complete = demands.searches <= {(one.of, one.text) for one in reading.searches}
        self._larger[reading.scope].note_answer(reading.began, now, complete=complete)
        if reading.whole is not None:
            for event in self._history:
                self._view.report(event, now)
            self._history = ()

    def _due(self, kind: SubjectKind, ahead: float = 0.0) -> list[str]:
        """Name what must be read; or again so soon that it is read along, in case more shows by now.

        Nothing is asked for twice at once.
        """
        due = self._rereads.due(self._clock(), ahead)
        asked = self._under_way(SubjectKind.HOST if kind is SubjectKind.MEMORY else kind)
        return [subject.id for subject in due if subject.kind is kind and subject.id not in asked]

    def _under_way(self, kind: SubjectKind) -> set[str]:
        return {one for asked in self._dialogues.under_way if asked.kind is kind for one in asked.ids}

    def _begin_reading(self, kind: SubjectKind, ids: Sequence[str], *, seek: bool = False) -> None:
        """Begin to read these: those that were late each by itself, all others together."""
        alone = [[one] for one in ids if Subject(kind, one) in self._late]
        together = [one for one in ids if [one] not in alone]
        size = 1 if kind is SubjectKind.CLUSTER else LONGEST_SEARCH
        chunks = [together[at : at + size] for at in range(0, len(together), size)]
        for chunk in (*chunks, *alone):
            self._dialogues.begin(Asked(kind, tuple(chunk)), self._reading(kind, chunk, seek=seek))

    def _begin_hosts(self, memory_seconds: float) -> None:
        """Read hosts that events speak of; with them, or after this many seconds, those with other memory."""
        ids, began = self._due(SubjectKind.HOST, SOON_SECONDS), self._clock()
        if ids or began >= self._memory_at + memory_seconds:
            ids = sorted({*ids, *self._due(SubjectKind.MEMORY, SOON_SECONDS)})
        if ids:
            self._memory_at = began
            self._begin_reading(SubjectKind.HOST, ids)

    def _begin_clusters(self) -> None:
        """Read clusters that events speak of; all where they speak of policies, which any may use."""
        if self._due(SubjectKind.POLICIES):
            self._policies.forget()
            now = self._clock()
            for cluster in self._view.cluster_ids:
                self._rereads.ask(Subject(SubjectKind.CLUSTER, cluster), now, ONCE)
            self._rereads.read(Subject(SubjectKind.POLICIES), None, now)
        self._begin_reading(SubjectKind.CLUSTER, self._due(SubjectKind.CLUSTER))

    def _seek(self) -> None:
        """Look for VMs that readers ask for and that are not known: an event of one may be late."""
        if self.believable:
            wanted = self.unknown_vms.wanted(self._under_way(SubjectKind.VM))
            self.unknown_vms.found({*wanted} & self._view.vms.keys())
            unknown = [vm for vm in wanted if vm not in self._view.vms]
            self._begin_reading(SubjectKind.VM, unknown, seek=True)

    def _settle(self) -> None:
        """Wait for the answers; raise what went wrong, once all of them have been taken in."""
        self._dialogues.wait()
        errors: list[Exception] = []
        for asked, outcome in self._dialogues.pop_all_ended():
            self._late.note(asked, late=outcome.late)
            if outcome.late and isinstance(outcome.error, UserError):
                _log.info("%s: asks again: %s", asked, outcome.error)
            elif outcome.error is not None:
                errors.append(outcome.error)
        for asked in self._dialogues.late:
            self._late.note(asked, late=True)
        if errors:
            raise errors[0]

    def _reading(self, kind: SubjectKind, ids: list[str], *, seek: bool) -> Dialogue[None]:
        """Read these, several no longer than for a while, since they can be asked for one by one."""
        began, wanted = self._clock(), self._view.demands.details

        def asked() -> tuple[Mapping[str, Any], bool]:
            with nullcontext() if len(ids) == 1 else at_most(self._search_seconds):
                if seek:
                    return find_vms(self._connection, ids, wanted), True
                return reread(self._connection, self._policies, kind, ids, wanted)

        found, detailed = yield asked
        for identity in found if seek else ids:
            subject = Subject(kind, identity)
            self._put_found(subject, found.get(identity), began, wanted if detailed else None)
        if seek:
            self.unknown_vms.found(ids)

    def _put_found(self, subject: Subject, found: Any, began: float, details: Detail | None) -> None:
        """Put what was read into the view, a VM with these details; what is not newer stays due."""
        view, rereads, span = self._view, self._rereads, Span(began, self._clock())
        detailed = details is not None and view.demands.details in details
        before = view.known(subject)
        newer = view.put(subject, found, span, detailed=detailed)
        along = {SubjectKind.MEMORY} if subject.kind is SubjectKind.HOST else set()
        for kind in {subject.kind} | along:
            if newer:
                rereads.read(Subject(kind, subject.id), found, began)
            else:
                rereads.ask(Subject(kind, subject.id), span.ended, ONCE)
        after = view.known(subject)
        if isinstance(after, Vm | Host) and (before is None or before.cluster != after.cluster):
            self._ask_for_groups({before and before.cluster, after.cluster}, span.ended)
        if subject.kind is SubjectKind.VM:
            if not detailed:
                rereads.ask(subject, span.ended, (LATER_SECONDS,))
            if memory_hosts(before) != memory_hosts(after):
                rereads.ask_for_hosts(memory_hosts(before) | memory_hosts(after), span.ended)
            if after is not None and view.has_unknown_profile(after):
                rereads.ask(Subject(SubjectKind.NETWORKS), span.ended, BRIEFLY)
