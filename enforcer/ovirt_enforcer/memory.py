"""What survives a restart: the parts of the store, what gates judge by, and what people ask about by it."""

import logging
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from ovirt_enforcer.actions.recent_moves import REACH_SECONDS, Backoff, Moves
from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.gates.gate import HOUR_SECONDS, Facts
from ovirt_enforcer.gates.people import moves, rule_key
from ovirt_enforcer.plans import Asked, KeptVm, PlansBack, failure_domains, plan_options
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.plans import kept_reasons, plan_record, plans_record
from ovirt_placement.answers.plans.text import text
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.requests import tagged_ids
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import vm_name
from ovirt_placement.planning.plan import Deadline, Plan
from ovirt_placement.planning.requests import Moved, plan_back
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.store.enforcer.history import HistoryStore, PlanRecord
from ovirt_placement.store.enforcer.intents import IntentState, Store
from ovirt_placement.store.enforcer.leader import (
    CycleStore,
    EnforcerSettingsStore,
    HaAnnouncementStore,
    LeaseStore,
    ViolatedRuleStore,
)
from ovirt_placement.store.enforcer.maintenance import MaintenanceStore, upgrade_id
from ovirt_placement.store.enforcer.observations import MembershipStore, SampleStore
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.orders import ApprovalStore, PauseStore
from ovirt_placement.store.sql.access import PERSON_SECONDS, StoreAccess
from ovirt_placement.store.sql.database import Database, StoreAway
from ovirt_placement.store.user_actions import UserActionStore
from ovirt_service.errors import UserError

_log = logging.getLogger(__name__)

_Part = TypeVar("_Part", bound=StoreAccess)


class Stores:
    """All of them, on one database, which is waited for as long as a person would wait."""

    def __init__(
        self, config: Config, epoch: Callable[[], int] | None = None, *, create: bool = True
    ) -> None:
        """`epoch` gives that of the lease: what a leader alone may write raises `LeaseLost` once it is over.

        With `create` false nothing is written: a store that does not exist is `StoreAway`.
        """
        self._closing = ExitStack()

        def opened(kind: Callable[..., _Part], **more: Any) -> _Part:
            given = {"engine": config.engine.name, "patience_seconds": PERSON_SECONDS, "create": create}
            part = kind(config.store.url, **given, **more)
            self._closing.callback(part.close)
            return part

        self.intents = opened(Store, epoch=epoch)
        self.leases = opened(LeaseStore)
        self.pauses = opened(PauseStore)
        self.keys = opened(KeyStore, epoch=epoch)
        self.memberships = opened(MembershipStore, epoch=epoch)
        self.history = opened(HistoryStore, epoch=epoch)
        self.samples = opened(SampleStore, epoch=epoch)
        self.approvals = opened(ApprovalStore, epoch=epoch)
        self.actions = opened(UserActionStore, epoch=epoch)
        self.maintenance = opened(MaintenanceStore, epoch=epoch)
        self.cycles = opened(CycleStore, epoch=epoch)
        self.violated = opened(ViolatedRuleStore, epoch=epoch)
        self.settings = opened(EnforcerSettingsStore, epoch=epoch)
        self.ha_announcements = opened(HaAnnouncementStore, epoch=epoch)

    def close(self) -> None:
        self._closing.close()


def check_store(config: Config) -> None:
    """Find out now what a person must set right; a store that was lost is waited for."""
    database = Database(config.store.url, patience_seconds=PERSON_SECONDS, create=True)
    try:
        database.check_writable()
    except StoreAway as passing:
        _log.warning("%s", passing)
    finally:
        database.close()


@dataclass(eq=False)
class Memory:
    """What survives a restart of all that gates judge by; for one thread.

    Every method raises `StoreAway` if the store is away, `LeaseLost` if another leads, and what `tagged`
    raises.
    """

    settings: EnforcerSettings
    stores: Stores
    #: Gives the ids of what bears the tag `exclude_tag`.
    ask_tagged: Callable[[], frozenset[str]] = frozenset
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    #: What bore the tag when the engine was asked last; None before.
    tagged: frozenset[str] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._approval_seconds = self.settings.approval_hours * HOUR_SECONDS

    def gates(self) -> Gates:
        """The gates as of now, to be read again before each round of admissions.

        Open migrations are read before those that have ended, so that one that ends meanwhile is not missed.
        """
        under_way = self.stores.intents.open_intents()
        history = self.stores.intents.history(within_seconds=Gates.reach_seconds(self.settings))
        ended = {intent.id for intent in history}
        self.tagged = self.ask_tagged() if self.settings.exclude_tag else frozenset[str]()
        facts = Facts(
            self.settings,
            self.clock(),
            tuple(intent for intent in under_way if intent.id not in ended),
            history=history,
            approvals=self.stores.approvals.approvals(),
            refused=self.stores.approvals.refused(self._approval_seconds),
            resumed=self.stores.pauses.resumed(),
            tagged=self.tagged,
            own_upgrades=frozenset(map(upgrade_id, self.stores.maintenance.active_ids())),
        )
        return Gates(facts, self._renewed)

    def words(self) -> Hashable:
        """Revision of approvals and pauses: changes with each decision of a user."""
        approved = tuple((one.cluster, one.plan, one.set_at) for one in self.stores.approvals.approvals())
        return approved, self.stores.pauses.pauses(), self.stores.pauses.resumptions()

    def _renewed(self, facts: Facts) -> Facts:
        """With what may be said or seen while steps are admitted."""
        cycles = self.stores.violated.cycles() if self.settings.hold_cycles > 1 else {}
        return replace(facts, pauses=self.stores.pauses.pauses(), violated_cycles=cycles)

    def observe(self, snapshot: Snapshot, cluster: str) -> None:
        """Count a cycle of a cluster for the rules that are violated there; done before it is planned for."""
        violated = {rule_key(violation) for violation in find_violations(snapshot, cluster)}
        seconds, enough = self.settings.interval_seconds, self.settings.hold_cycles
        self.stores.violated.record_violated(cluster, violated, cycle_seconds=seconds, enough=enough)

    def offer(self, gates: Gates, snapshot: Snapshot, plan: Plan) -> bool:
        """Let any plan that is made wait for a person's word if it needs one; whether that is new."""
        if not gates.waits_for_approval(snapshot, plan):
            self.stores.approvals.withdraw(plan.cluster)
            return False
        reads = text(plan_record(plan, snapshot))
        lasts = self._approval_seconds
        return self.stores.approvals.offer(plan.cluster, plan.id, moves(plan), reads, refusal_seconds=lasts)


def read_engine_state(config: Config, patience_seconds: float) -> Asked:
    """What is known of the engine, waited for so long, and what is held back now. Raises `UserError`."""
    settings = config.section("enforcer", EnforcerSettings)
    snapshot = inventory.snapshot(config=config, deadline=patience_seconds)
    with EngineConnection(config.engine) as connection, closing(Stores(config, create=False)) as stores:
        gates = current_gates(settings, connection, stores)
        try:
            ended = stores.intents.history(within_seconds=REACH_SECONDS)
        except StoreAway:
            ended = ()  # where there is no store, or none that answers
        moves = Moves(connection, settings.circle_seconds, time.monotonic)
        backoff = Backoff(settings, snapshot, ended, moves)
        held, spared, asked = gates.held(snapshot), gates.held_groups(snapshot), gates.unrenewed()
        by_history, domains = backoff.frozen(), failure_domains(config.ha, snapshot)
        options = plan_options(settings, spared, gates.frozen_hosts(snapshot), domains)
        holding = backoff.holding(held, spared)

    def not_now(plan: Plan) -> str | None:
        """What holds back the first step of a plan, and so all that waits for it."""
        first = next((step for step in plan.steps if not step.after), None)
        closed = None if first is None else asked.blocked_reason(snapshot, plan.cluster, first, plan)
        return None if closed is None else str(closed)

    def frozen_while_emptying(hosts: Collection[str]) -> Mapping[str, str]:
        draining = tuple({*snapshot.draining_hosts, *hosts})
        emptied = msgspec.structs.replace(snapshot, draining_hosts=draining)
        return {**by_history, **asked.frozen(emptied)}

    return Asked(snapshot, options, settings, holding, not_now, frozen_while_emptying)


def current_gates(settings: EnforcerSettings, connection: EngineConnection, stores: Stores) -> Gates:
    """The gates, by the configuration alone where no store answers. Raises what asking for tags raises."""
    tag = settings.exclude_tag
    tagged = tagged_ids(connection, tag) if tag else frozenset[str]()
    try:
        return Memory(settings, stores, lambda: tagged).gates()
    except StoreAway:
        return Gates(Facts(settings, datetime.now(UTC), tagged=tagged))


_DEADLINE_SECONDS = 30.0


def way_back(config: Config, snapshot: Snapshot, record: PlanRecord) -> PlansBack:
    """The migrations, and which VMs stay where the plan took them. Raises `UserError`."""
    if record.cluster not in snapshot.cluster_by_id:
        raise UserError(f"plan {record.id}: its cluster {record.cluster} is no more")
    settings = config.section("enforcer", EnforcerSettings)
    with EngineConnection(config.engine) as connection, closing(Stores(config, create=False)) as stores:
        held = current_gates(settings, connection, stores).frozen(snapshot)
    deadline = Deadline.after(_DEADLINE_SECONDS)
    domains = failure_domains(config.ha, snapshot) or ()
    undoing = plan_back(snapshot, record.cluster, moved_by(record), held, deadline, domains=domains)
    plans = plans_record([undoing.plan], snapshot)
    kept = (
        KeptVm(vm, vm_name(vm, snapshot), "; ".join(kept_reasons(vm, why, snapshot)))
        for vm, why in undoing.kept.items()
    )
    return PlansBack(**msgspec.structs.asdict(plans), undoes=record.id, kept=tuple(kept))


def moved_by(record: PlanRecord) -> tuple[Moved, ...]:
    """What became of the VMs that a plan moved: where each began, and where the plan left it in the end."""
    found: dict[str, Moved] = {}
    for migration in record.migrations:
        if migration.state is IntentState.DONE and migration.source is not None:
            began = found[migration.vm].source if migration.vm in found else migration.source
            found[migration.vm] = Moved(migration.vm, began, migration.target)
    return tuple(found.values())
