"""Readings of the engine: what calls for another one, and one with all that is known besides."""

import dataclasses
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Final, NamedTuple

from ovirt_enforcer.actions.executor import Executor
from ovirt_enforcer.actions.recent_moves import Backoff, Moves
from ovirt_enforcer.gates.admission import Observation
from ovirt_enforcer.gates.gate import Held
from ovirt_enforcer.maintenance.decision import Returning
from ovirt_enforcer.maintenance.runs import MaintenanceRuns, UpgradeFlags
from ovirt_enforcer.memory import Memory, Stores
from ovirt_enforcer.notifications import Notifications, notifications_of
from ovirt_enforcer.planners import PlannerProcesses, PlanQuestion
from ovirt_enforcer.plans import failure_domains, plan_options, planning_seconds, strategy_name
from ovirt_enforcer.service.leader import Leader, boot_clock
from ovirt_enforcer.service.metrics import Cycles, EnforcerMetrics, Sampler
from ovirt_enforcer.service.recording import Recorder
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.dialogues import PATIENCE_SECONDS
from ovirt_placement.engine.events import MIGRATION_CODES, VM_STARTED, EngineEvent, EventCode
from ovirt_placement.engine.requests import tagged_ids
from ovirt_placement.inventory.service.events import DOWN, SUBJECTS, WITH_ITS_VMS
from ovirt_placement.inventory.service.schedule import SubjectKind
from ovirt_placement.model import Snapshot
from ovirt_placement.model.infrastructure import set_up
from ovirt_placement.model.names import host_name
from ovirt_placement.planning.maintenance.site import leaving
from ovirt_placement.planning.plan import Plan
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.store.enforcer.intents import Intent
from ovirt_placement.store.enforcer.leader import Cycle, OpenBreaker, RememberedRefusal
from ovirt_service.daemon import Progress


@dataclass(eq=False)
class Parts:
    """What reconciles clusters, as the configuration asks for it."""

    config: Config
    connection: EngineConnection
    planners: PlannerProcesses
    progress: Progress
    stopping: Callable[[], bool]
    #: This process's own, as a candidate for the lease.
    name: str
    clock: Callable[[], float] = boot_clock
    #: Absent: as configured.
    notifications: Notifications | None = None
    lease_seconds: float | None = None
    time_of_day: Callable[[], datetime] = lambda: datetime.now(UTC)
    patience_seconds: float = PATIENCE_SECONDS
    #: The epoch of the lease in which is acted; 0 while it is watched who does.
    epoch: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Raise `UserError` for what a person must set right."""
        config, clock = self.config, self.clock
        self.settings = settings = config.section("enforcer", EnforcerSettings)

        def epoch() -> int:
            return self.epoch

        self.stores = stores = Stores(config, epoch)
        self.metrics = metrics = EnforcerMetrics(clock, config.engine.label)
        if self.notifications is None:
            self.notified = notifications_of(settings.notifications, config.engine, metrics.notified)
        else:
            self.notified = self.notifications
        sampler = Sampler(stores.samples, clock, epoch)
        self.recorder = recorder = Recorder(stores.history, metrics, self.notified, self.name, sampler)
        self.leader = leader = Leader(
            stores.leases,
            self.name,
            self.lease_seconds or settings.lease_seconds,
            clock,
            changed=recorder.leading,
            lasts=lambda until: self.maintenance.commands.lead_until(until),
        )
        self.cycles = Cycles(
            stores.cycles, metrics, leader, self.progress, clock, settings.interval_seconds, epoch
        )
        self.executor = Executor(
            self.connection,
            stores.intents,
            settings,
            clock,
            leader.still_leads,
            recorder.began,
            recorder.ended,
            self.patience_seconds,
        )
        tagged = partial(tagged_ids, self.connection, settings.exclude_tag)
        self.memory = Memory(settings, stores, tagged, self.time_of_day)
        self.moves = Moves(self.connection, settings.circle_seconds, clock)
        flags = UpgradeFlags(self.connection)
        self.maintenance = MaintenanceRuns(stores, self.executor, settings, flags, clock, self.notified)

    def goes_on(self) -> bool:
        """Whether another piece of work is to be done."""
        self.progress.mark()
        return not self.stopping()


class Projection(NamedTuple):
    """The cluster as it will be once what is under way has ended: what plans are made for meanwhile."""

    snapshot: Snapshot
    #: VMs that are on their way, and are to be left alone until they are there, with that as the reason.
    moving: Mapping[str, str]


_MOST_REFUSALS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Reading(Observation):
    """One reading of the engine, with all that is known besides."""

    parts: Parts
    history: Sequence[Intent]
    #: When it began, by the daemon's clock.
    began: float
    _returning: dict[str, Returning | None] = field(default_factory=dict, init=False)

    @cached_property
    def projection(self) -> Projection:
        """Every VM where it is going, as far as that is known; its room on the source is not free yet.

        A VM that is only expected somewhere stays where it is shown, and is left alone, too.
        """
        snapshot, ours = self.snapshot, {intent.vm: intent.target for intent in self.open_intents}
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
        after = World(snapshot).arrived(going, source_freed=False).snapshot if going else snapshot
        return Projection(after, reasons)

    @cached_property
    def backoff(self) -> Backoff:
        return Backoff(self.parts.settings, self.snapshot, self.history, self.parts.moves)

    def frozen(self, plan: Plan) -> dict[str, str]:
        """VMs that the plan under way is to leave alone, with the reason."""
        return {**self.backoff.frozen(plan.cluster), **self.gates.frozen(self.snapshot, plan)}

    def seconds_left(self, cluster: str) -> float:
        """How long until time alone lets something be done in a cluster that waits now; infinite if not."""
        return min(self.gates.seconds_left(self.snapshot, cluster), self.backoff.seconds_left(cluster))

    def returning_vms(self, cluster: str) -> Returning | None:
        """The VMs that a maintenance run brings back to a cluster. Raises `StoreAway`."""
        if cluster not in self._returning:
            self._returning[cluster] = self.parts.maintenance.returning_vms(cluster, self.snapshot)
        return self._returning[cluster]

    def moves_in(self, cluster: str) -> bool:
        if any(intent.cluster == cluster for intent in self.open_intents):
            return True
        return any(self.snapshot.vm_by_id[vm].cluster == cluster for vm in self.projection.moving)

    def cycle(self, waiting: Collection[str]) -> Cycle:
        """What this cycle is remembered by; of VMs left alone, those in `waiting` are named."""
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
        options = plan_options(self.parts.settings, spared, self.gates.frozen_hosts(self.snapshot), domains)
        known = self.snapshot.hosts_of_cluster.get(cluster, ())
        returning = self.returning_vms(cluster)
        lasting = {**self.projection.moving, **({} if returning is None else returning.given_up)}
        held = {**self.gates.held(self.snapshot, plan), **{vm: Held(why) for vm, why in lasting.items()}}
        here = [host.id for host in known if host.id in self.parts.maintenance.emptied]
        return PlanQuestion(
            cluster=cluster,
            holding=self.backoff.holding(held, spared, cluster),
            options=dataclasses.replace(options, constraints=tuple(leaving(self.projection.snapshot, here))),
            strategy=strategy_name(self.parts.settings),
            deadline=planning_seconds(self.parts.settings),
            simulate=simulate,
            seed=seed,
            restless=bool(self.backoff.restless_in(cluster)),
            home=None if returning is None else returning.moved,
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
    """Clusters that events concern; all, where one names none. Migrations with our ids do not count."""
    found: set[str] = set()
    for event in events:
        if event.code in _REPORTING and event.correlation_id not in ours:
            one = known.vm_by_id.get(event.vm or "") or known.host_by_id.get(event.host or "")
            cluster = event.cluster or (None if one is None else one.cluster)
            found |= known.cluster_by_id.keys() if cluster is None else {cluster}
    return found


def changed(before: Snapshot, after: Snapshot, ours: Collection[str]) -> set[str]:
    """Clusters that differ in what can violate or repair a rule, but for where the VMs in `ours` are."""
    if before is after:
        return set()
    if _stored(before) != _stored(after):
        return {*after.cluster_by_id}
    # What is in one alone; a cluster that is gone, or new, is a fact of its own.
    differing = {*_each_fact(before, ours)} ^ {*_each_fact(after, ours)}
    return {cluster for cluster, _ in differing}


def _stored(snapshot: Snapshot) -> tuple[object, ...]:
    keys = (snapshot.placement_keys, snapshot.frozen_keys, snapshot.sticky_copies)
    return (*keys, snapshot.placement_rules, snapshot.member_searches, snapshot.draining_hosts)


def _each_fact(snapshot: Snapshot, ours: Collection[str]) -> Iterator[tuple[str, Hashable]]:
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
