"""Readings of the engine: what calls for another one, and one with all that is known besides."""

import dataclasses
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Final, NamedTuple

from ovirt_enforcer.actions.executor import Executor
from ovirt_enforcer.actions.recent_moves import Backoff, Moves
from ovirt_enforcer.gates.admission import Observation
from ovirt_enforcer.gates.gate import Held
from ovirt_enforcer.maintenance.decision import WayHome
from ovirt_enforcer.maintenance.runs import MaintenanceRuns, UpgradeFlags
from ovirt_enforcer.memory import Memory, Stores
from ovirt_enforcer.notifications import Notifications
from ovirt_enforcer.planners import PlannerProcesses, PlanQuestion
from ovirt_enforcer.plans import failure_domains, plan_options, planning_seconds, strategy_name
from ovirt_enforcer.service.recording import Recorder
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.dialogues import PATIENCE_SECONDS
from ovirt_placement.engine.events import MIGRATION_CODES, VM_STARTED, EngineEvent, EventCode, read_events
from ovirt_placement.engine.requests import tagged_ids
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.connection import NoService
from ovirt_placement.inventory.service.events import DOWN, SUBJECTS, WITH_ITS_VMS, Feed, FeedInterrupted
from ovirt_placement.inventory.service.schedule import SubjectKind
from ovirt_placement.model import Snapshot
from ovirt_placement.model.infrastructure import set_up
from ovirt_placement.model.names import host_name
from ovirt_placement.planning.maintenance.site import leaving
from ovirt_placement.planning.plan import Plan
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.store.enforcer.intents import Intent
from ovirt_placement.store.enforcer.leader import Cycle, OpenBreaker, RememberedRefusal

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Parts:
    """What reconciles clusters, as the configuration asks for it."""

    config: Config
    connection: EngineConnection
    stores: Stores
    recorder: Recorder
    planners: PlannerProcesses
    #: Seconds that only grow.
    clock: Callable[[], float]
    #: Whether the epoch of a decision lasts.
    still_leads: Callable[[int], bool]
    #: Whether another piece of work is to be done.
    goes_on: Callable[[], bool]
    notifications: Notifications
    time_of_day: Callable[[], datetime] = lambda: datetime.now(UTC)
    patience_seconds: float = PATIENCE_SECONDS

    def __post_init__(self) -> None:
        self.settings = settings = self.config.section("enforcer", EnforcerSettings)
        self.executor = Executor(
            self.connection,
            self.stores.intents,
            settings,
            self.clock,
            self.still_leads,
            self.recorder.began,
            self.recorder.ended,
            self.patience_seconds,
        )
        tagged = partial(tagged_ids, self.connection, settings.exclude_tag)
        self.memory = Memory(settings, self.stores, tagged, self.time_of_day)
        self.moves = Moves(self.connection, settings.circle_seconds, self.clock)
        flags = UpgradeFlags(self.connection)
        self.maintenance = MaintenanceRuns(
            self.stores, self.executor, settings, flags, self.clock, self.notifications
        )


class Projection(NamedTuple):
    """The cluster as it will be once what is under way has ended: what plans are made for meanwhile."""

    snapshot: Snapshot
    #: VMs that are on their way, and are to be left alone until they are there, with that as the reason.
    moving: Mapping[str, str]


def projected(snapshot: Snapshot, open_intents: Iterable[Intent]) -> Projection:
    """Let every VM be where it is going, as far as that is known; its room on the source is not free yet.

    A VM that is only expected somewhere stays where it is shown, and is left alone, too.
    """
    ours = {intent.vm: intent.target for intent in open_intents}
    going, reasons = {}, {}
    for vm in snapshot.vms:
        *_, target = ("", *snapshot.pending_hosts.get(vm.id, ()))
        target = ours.get(vm.id) or target
        if vm.host in (None, target) or target not in snapshot.host_by_id:
            continue
        if vm.id in snapshot.unconfirmed and vm.id not in ours:
            reasons[vm.id] = f"it is expected on {host_name(target, snapshot)}, not confirmed"
        else:
            going[vm.id] = target
            reasons[vm.id] = f"it is on its way to {host_name(target, snapshot)}"
    if not going:
        return Projection(snapshot, reasons)
    return Projection(World(snapshot).arrived(going, source_freed=False).snapshot, reasons)


#: Of recorded refusals this many are written down.
_MOST_REFUSALS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Reading(Observation):
    """One reading of the engine, with all that is known besides."""

    parts: Parts
    #: Migrations that have ended, the oldest first.
    history: Sequence[Intent]
    #: When it began, by the daemon's clock.
    began: float
    _ways: dict[str, WayHome | None] = field(default_factory=dict, init=False)

    @property
    def _settings(self) -> EnforcerSettings:
        return self.parts.settings

    @cached_property
    def projection(self) -> Projection:
        """The cluster as it will be once what is under way has ended."""
        return projected(self.snapshot, self.open_intents)

    @cached_property
    def backoff(self) -> Backoff:
        """What the history holds back."""
        return Backoff(self._settings, self.snapshot, self.history, self.parts.moves)

    def frozen(self, plan: Plan) -> dict[str, str]:
        """VMs that the plan under way is to leave alone, with the reason."""
        return {**self.backoff.frozen(plan.cluster), **self.gates.frozen(self.snapshot, plan)}

    def seconds_left(self, cluster: str) -> float:
        """How long until time alone lets something be done in a cluster that waits now; infinite if not."""
        return min(self.gates.seconds_left(self.snapshot, cluster), self.backoff.seconds_left(cluster))

    def way_home(self, cluster: str) -> WayHome | None:
        """The VMs that a maintenance run brings back to a cluster. Raises `StoreAway`."""
        if cluster not in self._ways:
            self._ways[cluster] = self.parts.maintenance.way_home(cluster, self.snapshot)
        return self._ways[cluster]

    def moves_in(self, cluster: str) -> bool:
        """Whether anything of a cluster is on its way, or not known to have arrived."""
        if any(intent.cluster == cluster for intent in self.open_intents):
            return True
        return any(self.snapshot.vm_by_id[vm].cluster == cluster for vm in self.projection.moving)

    def cycle(self, waiting: Collection[str]) -> Cycle:
        """What the cycle of this reading is remembered by.

        Of VMs that are left alone those in `waiting` are named: the others are to go nowhere.
        """
        left_out = [RememberedRefusal(vm, None, one.reason) for vm, one in self.backoff.refused_vms.items()]
        left_out += [RememberedRefusal(vm, host, why) for (vm, host), why in self.backoff.left_out.items()]
        breakers = self.gates.open_breakers(self.snapshot)
        return Cycle(
            epoch=self.epoch,
            error=None,
            breakers=tuple(OpenBreaker(*one) for one in breakers.items()),
            refusals=tuple([one for one in left_out if one.vm in waiting][:_MOST_REFUSALS]),
        )

    def question(
        self, cluster: str, plan: Plan | None, *, simulate: bool, seed: int | None = None
    ) -> PlanQuestion:
        """What a planner is to be asked for a cluster; with a seed, what was drawn before is drawn again."""
        spared = {**self.backoff.spared(cluster), **self.gates.held_groups(self.snapshot)}
        domains = failure_domains(self.parts.config.ha, self.snapshot)
        options = plan_options(self._settings, spared, self.gates.frozen_hosts(self.snapshot), domains)
        known = self.snapshot.hosts_of_cluster.get(cluster, ())
        way = self.way_home(cluster)
        lasting = {**self.projection.moving, **({} if way is None else way.given_up)}
        held = {**self.gates.held(self.snapshot, plan), **{vm: Held(why) for vm, why in lasting.items()}}
        here = [host.id for host in known if host.id in self.parts.maintenance.emptied]
        return PlanQuestion(
            cluster=cluster,
            holding=self.backoff.holding(held, spared, cluster),
            options=dataclasses.replace(options, constraints=tuple(leaving(self.projection.snapshot, here))),
            strategy=strategy_name(self._settings),
            deadline=planning_seconds(self._settings),
            simulate=simulate,
            seed=seed,
            restless=bool(self.backoff.restless_in(cluster)),
            home=None if way is None else way.moved,
        )


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
