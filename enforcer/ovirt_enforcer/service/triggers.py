"""What calls for another reading of a cluster, and how it is read."""

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.events import (
    MIGRATION_CODES,
    VM_STARTED,
    EngineEvent,
    EventCode,
    read_events,
)
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.connection import NoService
from ovirt_placement.inventory.on_demand import referred
from ovirt_placement.inventory.publication import age
from ovirt_placement.inventory.service.events import DOWN, SUBJECTS, WITH_ITS_VMS
from ovirt_placement.inventory.service.follower import Feed, FeedInterrupted
from ovirt_placement.inventory.service.schedule import SubjectKind
from ovirt_placement.model import Snapshot
from ovirt_placement.model.infrastructure import set_up

#: Rules, hosts or VMs changed, or a VM started, stopped or was migrated.
_REPORTING: Final = frozenset(
    {
        *(code for code, kind in SUBJECTS.items() if kind is not SubjectKind.NETWORKS),
        *(WITH_ITS_VMS | DOWN | VM_STARTED | MIGRATION_CODES),
        EventCode.VDS_ACTIVATE,
        EventCode.USER_ADD_VDS,
        EventCode.USER_UPDATE_VDS,
        EventCode.USER_REMOVE_VDS,
        EventCode.VDS_APPROVE,
        EventCode.USER_STOP_VM,
        EventCode.USER_UPDATE_VM,
        EventCode.USER_PAUSE_VM,
        EventCode.USER_RESUME_VM,
        EventCode.USER_INITIATED_SHUTDOWN_VM,
        EventCode.USER_SUSPEND_VM,
    }
)


def reported(events: Iterable[EngineEvent], known: Snapshot, ours: Collection[str]) -> set[str]:
    """Clusters that events concern; all, where one of weight names none.

    Migrations with our own correlation ids do not count: they are watched anyway.
    """
    found: set[str] = set()
    for event in events:
        if event.code in _REPORTING and event.correlation_id not in ours:
            one = known.vm_by_id.get(event.vm or "") or known.host_by_id.get(event.host or "")
            cluster = event.cluster or (None if one is None else one.cluster)
            found |= known.cluster_by_id.keys() if cluster is None else {cluster}
    return found


def changed(before: Snapshot, after: Snapshot, ours: Collection[str]) -> set[str]:
    """Clusters whose rules, hosts, VMs or keys differ in what can violate or repair a rule.

    Where the VMs in `ours` are does not count.
    """
    if before is after:
        return set()
    if _stored(before) != _stored(after):
        return {*after.cluster_by_id}
    # What is in one alone; a cluster that is gone, or new, is a fact of its own.
    differing = {*_each_fact(before, ours)} ^ {*_each_fact(after, ours)}
    return {cluster for cluster, _ in differing}


def _stored(snapshot: Snapshot) -> tuple[object, ...]:
    """Placement keys and rules with whom they search, and hosts that are emptied."""
    keys = (snapshot.placement_keys, snapshot.frozen_keys, snapshot.sticky_copies)
    return (*keys, snapshot.placement_rules, snapshot.member_searches, snapshot.draining_hosts)


def _each_fact(snapshot: Snapshot, ours: Collection[str]) -> Iterator[tuple[str, Hashable]]:
    """What counts, with its cluster."""
    for cluster in snapshot.clusters:
        yield cluster.id, repr(cluster)
        for label in snapshot.affinity_labels:
            if label.implicit:
                yield cluster.id, repr(label)
    for host in snapshot.hosts:
        yield host.cluster, repr(set_up(host))
    for vm in snapshot.vms:
        where = None if vm.id in ours else vm.host
        size = vm.memory_mb, vm.guaranteed_mb, vm.vcpus
        restart = vm.ha, vm.ha_priority
        # While it migrates, a VM counts as running where it is.
        status = "up" if vm.status == "migrating" else vm.status
        yield vm.cluster, (vm.id, where, status, restart, size, vm.migratable, vm.pinned_hosts)
    for group in snapshot.affinity_groups:
        yield group.cluster, (repr(group), snapshot.group_vms[group.id], snapshot.group_hosts[group.id])


#: For so long the inventory service lets an asker wait, so that the end is heard of.
_WAIT_SECONDS: Final = 1.0
#: More events than this at once are not looked at one by one.
_PAGE: Final = 500
_log = logging.getLogger(__name__)


class Changed(NamedTuple):
    """What happened since the last time."""

    #: Whether the inventory service has published another snapshot.
    published: bool
    events: tuple[EngineEvent, ...]
    #: Whether there were more events than were read.
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
        """Release what is waited for: there is no rest any more that could be ended."""
        ends, self._awake, self._wake = (self._awake, self._wake), -1, -1
        for end in ends:
            os.close(end)

    def fileno(self) -> int:
        """What is ready to be read once something happened."""
        return self._awake

    def wake(self) -> None:
        """Wake who waits, though nothing happened."""
        with suppress(OSError):  # it has been reported often enough, or is closed
            os.write(self._wake, b"!")

    def take_changes(self) -> Changed:
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
        """Ask the engine; if it is away, the daemon will say so."""
        if not self._wanted():
            self._feed = None
            return
        try:
            after = 0 if self._feed is None else self._feed.after
            page = read_events(self._connection, after=after, at_most=_PAGE)
        except Exception as error:  # whatever it is, the daemon meets it, too, and says so
            _log.debug("no events: %s", error)
            return
        # At first, and after a gap, it is not known what happened before.
        now, new = time.monotonic(), None
        if self._feed is not None:
            with suppress(FeedInterrupted):
                new = self._feed.take_page(page, now)
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
