"""The running enforcer: its parts, its loop in one thread, signals in another, and what systemd hears of it.

The main thread waits for signals and does nothing else, so SIGTERM is obeyed at once, whatever the loop waits
for: an engine that hangs, or a store that is locked. What is under way then is what a killed process leaves.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Collection
from functools import partial
from multiprocessing.connection import wait
from typing import Final, NoReturn

from ovirt_enforcer.log import AUDIT_LOG, LogText, report
from ovirt_enforcer.memory import Stores, check_store
from ovirt_enforcer.notifications import notifications_of
from ovirt_enforcer.planners import PlannerProcesses, preload
from ovirt_enforcer.service.daemon import Daemon
from ovirt_enforcer.service.leader import Leader, boot_clock, own_name
from ovirt_enforcer.service.metrics import Cycles, EnforcerMetrics, HaMetrics, Sampler
from ovirt_enforcer.service.reading import Changes, Parts
from ovirt_enforcer.service.recording import Recorder, log_user_actions
from ovirt_enforcer.settings import EnforcerSettings, Mode, recorded_settings
from ovirt_enforcer.watchers.engine_watch import DrainWatch, MembershipRecorder, NameWatch, UnitWatch
from ovirt_enforcer.watchers.ha_watch import Announcements, HaMonitor
from ovirt_enforcer.watchers.key_recorder import KeyRecorder
from ovirt_enforcer.watchers.verdict import ReservationVerdict
from ovirt_placement.answers.configured import configured_names
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection, connect
from ovirt_placement.engine.connection.failures import EngineAway, EngineFault
from ovirt_placement.engine.events import add_event, find_start_events
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.on_demand import referred
from ovirt_placement.inventory.publication import age
from ovirt_placement.model import Snapshot
from ovirt_service import metrics as metrics_page
from ovirt_service.daemon import Notifier, Progress, Stop
from ovirt_service.errors import UserError

_log = logging.getLogger(__name__)

#: How often a rest is interrupted for a sign of life.
_MARK_SECONDS: Final = 1.0
#: HA reservations are judged by statistics no older than this many of their intervals.
_MOST_INTERVALS: Final = 2


#: Without an inventory service a large engine is read page by page; who waits is a loop, and no person.
_PATIENCE_SECONDS: Final = 60.0


class StateReading:
    """Reads snapshots, one after another, and remembers how the last one was."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._detailed = True
        self._statistics_age: float | None = None

    @property
    def statistics_age_seconds(self) -> float | None:
        """How old the figures of CPU and memory use are that were read last; None if there were none."""
        return self._statistics_age

    def whole(self) -> Snapshot:
        """A snapshot whose reading begins now. Raises what `inventory.snapshot` raises, as does `latest`."""
        return self._read(max_age=0.0)

    def latest(self) -> Snapshot:
        """A snapshot as young as a decision needs it."""
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
        self._statistics_age = 0.0 if published is None else age(published.moments.statistics_at)
        return snapshot


class Service:
    """All that runs in the enforcer's loop; for one thread."""

    def __init__(
        self, config: Config, connection: EngineConnection, progress: Progress, stopping: Callable[[], bool]
    ) -> None:
        """Once `stopping` says so, nothing more is asked of the engine. Raises `UserError`."""
        self.settings = settings = config.section("enforcer", EnforcerSettings)
        check_store(config)
        self._progress = progress
        self._stopping = stopping
        self._reading = StateReading(config)
        preload("ovirt_enforcer.planners", "ovirt_enforcer.watchers.verdict")
        self._planners = PlannerProcesses()
        self._changes = Changes(config, connection, settings.events_seconds, lambda: self._daemon.leads)
        metrics = EnforcerMetrics(engine=config.engine.label)
        for mode in Mode:
            metrics.mode.labels(mode.value).set(mode is settings.mode)
        clock, interval = boot_clock, settings.interval_seconds

        def epoch() -> int:
            return self._daemon.epoch

        self._stores = stores = Stores(config, epoch)
        notifications = notifications_of(settings.notifications, config.engine, metrics.notified)
        name = own_name()
        sampler = Sampler(stores.samples, boot_clock, epoch)
        recorder = Recorder(stores.history, metrics, notifications, name, sampler)
        self._leader = Leader(
            stores.leases,
            name,
            settings.lease_seconds,
            changed=recorder.leading,
            lasts=lambda until: self._parts.maintenance.commands.lead_until(until),
        )
        cycles = Cycles(stores.cycles, metrics, self._leader, progress, clock, interval, epoch)
        AUDIT_LOG.open(settings.audit_log)
        pages = {"/healthz": cycles.page}
        metrics_page.serve(metrics.registry, settings.metrics, "[enforcer] metrics", pages)
        read_starts = partial(find_start_events, connection)
        self._keeper = KeyRecorder(stores.keys, clock, interval, read_starts, self._reading.suffices, epoch)
        ha_metrics = HaMetrics(metrics)

        def judged(verdicts: Collection[ReservationVerdict]) -> None:
            ha_metrics.judged(verdicts)
            sampler.judged(verdicts)

        self._ha_watch = HaMonitor(
            Announcements(stores.ha_announcements, notifications, clock, epoch),
            config.ha,
            hold_seconds=settings.ha.hold_seconds,
            statistics_seconds=_MOST_INTERVALS * config.inventory.statistics_interval_seconds,
            longest_pause=interval,
            clock=clock,
            epoch=epoch,
            statistics_age=lambda: self._reading.statistics_age_seconds,
            report=judged,
        )
        self._parts = Parts(
            config,
            connection,
            stores,
            recorder=recorder,
            planners=self._planners,
            clock=clock,
            still_leads=self._leader.still_leads,
            goes_on=self._goes_on,
            notifications=notifications,
        )
        #: The last epoch in which the settings of this process were written down.
        self._recorded_in = 0
        watchers = (
            self._parts.executor,
            recorder,
            MembershipRecorder(stores.memberships, partial(add_event, connection), clock, interval),
            self._keeper,
            self._ha_watch,
            DrainWatch(notifications, clock, 2 * interval),
            UnitWatch(notifications, clock),
            NameWatch(configured_names(config), lambda: self._parts.memory.tagged, metrics.unmatched_names),
        )
        self._daemon = Daemon(
            self._reading.whole,
            self._leader,
            self._parts,
            metrics,
            cycles,
            watchers,
            self._record_actions,
        )
        try:
            connection.get("/clusters", max=1)  # what a person must set right is found out now
        except (EngineAway, EngineFault) as passing:  # an engine that is away is waited for
            _log.warning("%s", passing)

    def run(self) -> None:
        """Enforce until it is to stop; lead no more then."""
        self._changes.watch()
        self._leader.tend_concurrently(lambda: self._progress.hangs)
        try:
            self._daemon.run(self._rest)
        finally:
            self._planners.close()
            self._ha_watch.close()
            self._leader.step_down()
            self.close()

    def close(self) -> None:
        """Close the store, and what ends a rest."""
        self._changes.close()
        self._stores.close()

    def wake(self) -> None:
        """End the rest between two cycles; for any thread."""
        self._changes.wake()

    def _record_actions(self) -> None:
        """Record what settings this process leads with, once in each epoch, and log what people did."""
        epoch = self._daemon.epoch
        if epoch != self._recorded_in:
            self._stores.settings.record(epoch, recorded_settings(self.settings))
            self._recorded_in = epoch
        log_user_actions(self._stores.actions)

    def _goes_on(self) -> bool:
        self._progress.mark()
        return not self._stopping()

    def _rest(self, seconds: float) -> bool:
        """Until something is due, see what happens and what is published; whether it is time to stop."""
        until = time.monotonic() + seconds
        while self._goes_on() and not self._pass_on_changes() and (left := until - time.monotonic()) > 0:
            plans = self._planners.answers()
            checks = self._ha_watch.answers()
            ready = wait([self._changes.fileno(), *plans, *checks], min(left, _MARK_SECONDS))
            if not {*map(id, plans)}.isdisjoint(map(id, ready)):
                break
        return self._stopping()

    def _pass_on_changes(self) -> bool:
        """Pass on what happened; whether that calls for a cycle."""
        changed = self._changes.take_changes()
        if not self._daemon.leads:
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
        return self._daemon.due


#: For so long the loop may go on once it is to end.
_LAST_SECONDS: Final = 0.7
#: For so long the log may take to write that down.
_LAST_WORD_SECONDS: Final = 0.3
#: How soon it is noticed that the loop has ended by itself.
_LOOK_SECONDS: Final = 0.2
#: One piece of work may take this many slow requests and this much time for itself; then it hangs.
_MOST_SLOW_REQUESTS: Final = 10
_LONGEST_WORK_SECONDS: Final = 60.0


def run(config: Config, ready: Callable[[str], None]) -> None:
    """Enforce until SIGTERM or SIGINT; `ready` is called once with what is watched, and how."""
    stop, notifier = Stop(), Notifier()
    loop = _Loop(config, ready, notifier)
    loop.start()
    while loop.is_alive() and not stop.sleep(_LOOK_SECONDS):
        pass
    if stop.requested:
        notifier.stopping()
        loop.end()
        loop.join(_LAST_SECONDS)
        if loop.is_alive():
            _end_in_the_middle()
    if loop.error is not None:
        raise loop.error


def _end_in_the_middle() -> NoReturn:
    """End with the loop still at work; where even the log takes nothing any more, without a word."""

    def say() -> None:
        report(LogText.ENDED_AT_WORK)
        logging.shutdown()

    saying = threading.Thread(target=say, daemon=True)
    saying.start()
    saying.join(_LAST_WORD_SECONDS)
    os._exit(0)


class _Loop(threading.Thread):
    """The thread in which everything is done."""

    def __init__(self, config: Config, ready: Callable[[str], None], notifier: Notifier) -> None:
        super().__init__(name="loop", daemon=True)
        self._config = config
        self._ready = ready
        self._notifier = notifier
        self._progress = Progress(_LONGEST_WORK_SECONDS + _MOST_SLOW_REQUESTS * config.engine.timeout_seconds)
        self._service: Service | None = None
        self._ending = False
        #: What ended it before its time.
        self.error: BaseException | None = None

    def end(self) -> None:
        """Let it end, at the next opportunity."""
        self._ending = True
        if self._service is not None:
            self._service.wake()

    def run(self) -> None:
        try:
            with connect(self._config.engine) as connection:
                self._service = service = Service(
                    self._config, connection, self._progress, lambda: self._ending
                )
                self._ready(f"watching {connection.settings.address} (mode {service.settings.mode})")
                self._notifier.ready()
                self._notifier.keep_alive_concurrently(lambda: self._progress.hangs)
                service.run()
        except BaseException as error:  # the main thread raises it
            self.error = error
