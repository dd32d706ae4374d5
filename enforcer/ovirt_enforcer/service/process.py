"""The running enforcer: its parts, its loop in one thread, signals in another, and what systemd hears of it.

The main thread waits for signals and does nothing else, so SIGTERM is obeyed at once, whatever the loop waits
for: an engine that hangs, or a store that is locked. What is under way then is what a killed process leaves.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from functools import partial
from multiprocessing.connection import wait
from typing import Final, NamedTuple, NoReturn

from ovirt_enforcer.log import AUDIT_LOG, LogText, report
from ovirt_enforcer.memory import check_store
from ovirt_enforcer.planners import PlannerProcesses, preload
from ovirt_enforcer.service.daemon import Daemon
from ovirt_enforcer.service.leader import own_name
from ovirt_enforcer.service.reading import Parts
from ovirt_enforcer.service.recording import log_user_actions
from ovirt_enforcer.settings import Mode, recorded_settings
from ovirt_enforcer.watchers.engine_watch import DrainWatch, MembershipRecorder, NameWatch, UnitWatch
from ovirt_enforcer.watchers.ha_watch import Announcements, HaMonitor
from ovirt_enforcer.watchers.key_recorder import KeyRecorder
from ovirt_placement.answers.configured import configured_names
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway, EngineFault
from ovirt_placement.engine.events import VM_STARTED, EngineEvent, add_event, find_kinds, read_events
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.connection import NoService
from ovirt_placement.inventory.on_demand import referred
from ovirt_placement.inventory.publication import age
from ovirt_placement.inventory.service.events import Feed, FeedInterrupted
from ovirt_placement.model import Snapshot
from ovirt_service import metrics as metrics_page
from ovirt_service.daemon import Notifier, Progress, Stop
from ovirt_service.errors import UserError
from ovirt_service.process import in_background

_log = logging.getLogger(__name__)

#: How often a rest is interrupted for a sign of life.
_MARK_SECONDS: Final = 1.0
#: HA reservations are judged by statistics no older than this many of their intervals.
_MOST_INTERVALS: Final = 2


#: For so long the inventory service lets an asker wait, so that the end is heard of.
_WAIT_SECONDS: Final = 1.0
#: More events than this at once are not looked at one by one.
_PAGE: Final = 500


class Changed(NamedTuple):
    """What happened since the last time."""

    published: bool
    events: tuple[EngineEvent, ...]
    missed: bool


_NOTHING: Final = Changed(published=False, events=(), missed=False)


class Changes:
    """Notices changes; one thread may wait for them, with `fileno`."""

    def __init__(
        self, config: Config, connection: EngineConnection, seconds: float, wanted: Callable[[], bool]
    ) -> None:
        """Without an inventory service the engine is asked for events every `seconds`, while `wanted`."""
        self._config = config
        self._connection = connection
        self._seconds = seconds
        self._wanted = wanted
        self._lock = threading.Lock()
        self._changed = _NOTHING
        self._taken = threading.Event()
        self._feed: Feed | None = None
        self._awake, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def watch(self) -> None:
        """Begin, until it is closed."""
        threading.Thread(target=self._watch, name="changes", daemon=True).start()

    def close(self) -> None:
        ends, self._awake, self._wake = (self._awake, self._wake), -1, -1
        for end in ends:
            os.close(end)

    def fileno(self) -> int:
        """What is ready to be read once something happened."""
        return self._awake

    def wake(self) -> None:
        with suppress(OSError):  # it has been reported often enough, or is closed
            os.write(self._wake, b"!")

    def pop_changes(self) -> Changed:
        """What happened since this was called last."""
        with self._lock:
            with suppress(BlockingIOError):
                os.read(self._awake, 4096)
            changed, self._changed = self._changed, _NOTHING
        self._taken.set()
        return changed

    def _watch(self) -> None:
        while self._wake >= 0:
            try:
                published = inventory.wait_for_change(_WAIT_SECONDS, config=self._config)
            except NoService:
                self._read_events()
                time.sleep(self._seconds)
                continue
            if published:
                self._taken.clear()
                with self._lock:
                    self._changed = self._changed._replace(published=True)
                self.wake()
                # Until it is read, it counts as not seen yet, and would be reported at once again.
                self._taken.wait()

    def _read_events(self) -> None:
        if not self._wanted():
            self._feed = None
            return
        try:
            after = 0 if self._feed is None else self._feed.after
            page = read_events(self._connection, after=after, at_most=_PAGE)
        except Exception as error:  # the daemon meets it, too, and says so
            _log.debug("no events: %s", error)
            return
        # At first, and after a gap, it is not known what happened before.
        now, new = time.monotonic(), None
        if self._feed is not None:
            with suppress(FeedInterrupted):
                new = self._feed.read_page(page, now)
        if new is None:
            self._feed = Feed(page, now)
        with self._lock:
            events = (*self._changed.events, *(new or ()))
            self._changed = self._changed._replace(events=events, missed=self._changed.missed or new is None)
        if new is None or new:
            self.wake()


#: Without an inventory service a large engine is read page by page; who waits is a loop, and no person.
_PATIENCE_SECONDS: Final = 60.0


class StateReading:
    """Reads snapshots, one after another, and remembers how the last one was."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._detailed = True
        #: How old the figures of CPU and memory use are that were read last; None if there were none.
        self.statistics_age_seconds: float | None = None

    def whole(self) -> Snapshot:
        """A snapshot whose reading begins now. Raises what `inventory.snapshot` raises, as does `latest`."""
        return self._read(max_age=0.0)

    def latest(self) -> Snapshot:
        return self._read(max_age=None)

    def suffices(self, keyed: Snapshot) -> bool:
        """Whether the last snapshot, with these keys, has the disks, NICs and owners that they refer to.

        A service that has just started, or heard of such keys for the first time, publishes before it has
        read these.
        """
        return self._detailed or not referred(key.level for key in keyed.placement_keys)

    def _read(self, max_age: float | None) -> Snapshot:
        snapshot, published = inventory.known(
            config=self._config, max_age=max_age, deadline=_PATIENCE_SECONDS
        )
        self._detailed = published is None or age(published.moments.details_at) is not None
        self.statistics_age_seconds = 0.0 if published is None else age(published.moments.statistics_at)
        return snapshot


class Service:
    """All that runs in the enforcer's loop; for one thread."""

    def __init__(
        self, config: Config, connection: EngineConnection, progress: Progress, stopping: Callable[[], bool]
    ) -> None:
        """Once `stopping` says so, nothing more is asked of the engine. Raises `UserError`."""
        check_store(config)
        self._progress = progress
        self._stopping = stopping
        self._reading = StateReading(config)
        preload("ovirt_enforcer.planners", "ovirt_enforcer.watchers.verdict")
        self._planners = PlannerProcesses()
        self._parts = parts = Parts(config, connection, self._planners, progress, stopping, own_name())
        self.settings = settings = parts.settings
        clock, interval, stores = parts.clock, settings.interval_seconds, parts.stores
        metrics, notified = parts.metrics, parts.notified
        self._changes = Changes(config, connection, settings.events_seconds, lambda: parts.epoch > 0)
        for mode in Mode:
            metrics.mode.labels(mode.value).set(mode is settings.mode)
        AUDIT_LOG.open(settings.audit_log)
        pages = {"/healthz": parts.cycles.page}
        metrics_page.serve(metrics.registry, settings.metrics, "[enforcer] metrics", pages)

        def epoch() -> int:
            return parts.epoch

        def read_starts() -> tuple[EngineEvent, ...]:
            return find_kinds(connection, VM_STARTED).events

        self._keeper = KeyRecorder(stores.keys, clock, interval, read_starts, self._reading.suffices, epoch)
        self._ha_watch = HaMonitor(
            Announcements(stores.ha_announcements, notified, clock, epoch),
            config.ha,
            hold_seconds=settings.ha.hold_seconds,
            statistics_seconds=_MOST_INTERVALS * config.inventory.statistics_interval_seconds,
            longest_pause=interval,
            clock=clock,
            epoch=epoch,
            statistics_age=lambda: self._reading.statistics_age_seconds,
            report=parts.recorder.judged,
        )
        watchers = (
            parts.executor,
            parts.recorder,
            MembershipRecorder(stores.memberships, partial(add_event, connection), clock, interval),
            self._keeper,
            self._ha_watch,
            DrainWatch(notified, clock, 2 * interval),
            UnitWatch(notified, clock),
            NameWatch(configured_names(config), lambda: parts.memory.tagged, metrics.unmatched_names),
        )
        self._daemon = Daemon(self._reading.whole, parts, watchers, self._record_actions)
        self._recorded_in = 0
        try:
            connection.get("/clusters", max=1)  # what a person must set right is found out now
        except (EngineAway, EngineFault) as passing:  # an engine that is away is waited for
            _log.warning("%s", passing)

    def run(self) -> None:
        self._changes.watch()
        self._parts.leader.tend_concurrently(lambda: self._progress.hangs)
        try:
            self._daemon.run(self._rest)
        finally:
            self._planners.close()
            self._ha_watch.close()
            self._parts.leader.step_down()
            self.close()

    def close(self) -> None:
        self._changes.close()
        self._parts.stores.close()

    def wake(self) -> None:
        self._changes.wake()

    def _record_actions(self) -> None:
        epoch, stores = self._parts.epoch, self._parts.stores
        if epoch != self._recorded_in:
            stores.settings.record(epoch, recorded_settings(self.settings))
            self._recorded_in = epoch
        log_user_actions(stores.actions)

    def _rest(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while (
            self._parts.goes_on() and not self._pass_on_changes() and (left := until - time.monotonic()) > 0
        ):
            plans = self._planners.answers()
            checks = self._ha_watch.answers()
            ready = wait([self._changes.fileno(), *plans, *checks], min(left, _MARK_SECONDS))
            if not {*map(id, plans)}.isdisjoint(map(id, ready)):
                break
        return self._stopping()

    def _pass_on_changes(self) -> bool:
        changed = self._changes.pop_changes()
        if not self._parts.epoch:
            return False
        self._ha_watch.tend()
        if changed.missed:
            self._daemon.wake_all()
        self._daemon.happened(changed.events)
        if changed.published or self._keeper.needs_retry:
            self._keeper.observe_latest(self._reading.latest)
        if changed.published:
            try:
                self._daemon.published(self._reading.latest())
            except UserError as error:
                _log.debug("%s", error)  # the keeper has said so
        # After a failure what is due waits for the end of the pause, unless the engine shows something new.
        return self._daemon.due and (changed != _NOTHING or self._parts.cycles.failure is None)


#: For so long the loop may go on once it is to end.
_LAST_SECONDS: Final = 0.7
#: For so long the log may take to write that down.
_LAST_WORD_SECONDS: Final = 0.3
#: How soon it is noticed that the loop has ended by itself.
_POLL_SECONDS: Final = 0.2
#: One piece of work may take this many slow requests and this much time for itself; then it hangs.
_MOST_SLOW_REQUESTS: Final = 10
_LONGEST_WORK_SECONDS: Final = 60.0


def run(config: Config, ready: Callable[[str], None]) -> None:
    """Enforce until SIGTERM or SIGINT; `ready` is called once with what is watched, and how."""
    stop, notifier, ending = Stop(), Notifier(), threading.Event()
    progress = Progress(_LONGEST_WORK_SECONDS + _MOST_SLOW_REQUESTS * config.engine.timeout_seconds)
    running: list[Service] = []

    def enforce() -> None:
        with EngineConnection(config.engine) as connection:
            service = Service(config, connection, progress, ending.is_set)
            running.append(service)
            ready(f"watching {connection.settings.address} (mode {service.settings.mode})")
            notifier.ready()
            notifier.keep_alive_concurrently(lambda: progress.hangs)
            service.run()

    loop = in_background(enforce, "loop")
    while not loop.done() and not stop.sleep(_POLL_SECONDS):
        pass
    if stop.requested:
        notifier.stopping()
        ending.set()
        for service in running:
            service.wake()
        if not futures.wait([loop], _LAST_SECONDS).done:
            _end_in_the_middle()
    loop.result()


def _end_in_the_middle() -> NoReturn:
    """End with the loop still at work; where even the log takes nothing any more, without a word."""

    def say() -> None:
        report(LogText.ENDED_AT_WORK)
        logging.shutdown()

    saying = threading.Thread(target=say, daemon=True)
    saying.start()
    saying.join(_LAST_WORD_SECONDS)
    os._exit(0)
