"""What people ask about, where it is the engine: its state, what is held back now, and the way back."""

import time
from collections.abc import Collection, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

import msgspec
from msgspec.structs import replace

from ovirt_enforcer.actions.recent_moves import REACH_SECONDS, Backoff, Moves
from ovirt_enforcer.gates.admission import Gates, Memory
from ovirt_enforcer.gates.gate import Remembered
from ovirt_enforcer.plans import Asked, KeptVm, PlansBack, failure_domains, plan_options
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_enforcer.stores import Stores
from ovirt_placement.answers.plans import kept_text, plans_record
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import EngineConnection, connect
from ovirt_placement.engine.requests import tagged_ids
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import vm_name
from ovirt_placement.planning.plan import Deadline, Plan
from ovirt_placement.planning.requests import Moved, plan_back
from ovirt_placement.store.enforcer.history import PlanRecord
from ovirt_placement.store.enforcer.intents import IntentState
from ovirt_placement.store.sql.database import StoreAway
from ovirt_service.errors import UserError


def read_engine_state(config: Config, patience_seconds: float) -> Asked:
    """By the configuration, what is known of the engine, and what is held back now. Raises `UserError`.

    `patience_seconds` is how long a state of the engine is waited for.
    """
    settings = config.section("enforcer", EnforcerSettings)
    snapshot = inventory.snapshot(config=config, deadline=patience_seconds)
    with connect(config.engine) as connection, closing(Stores(config, create=False)) as stores:
        gates = current_gates(settings, connection, stores)
        try:
            ended = stores.intents.history(within_seconds=REACH_SECONDS)
        except StoreAway:
            ended = ()  # where there is no store, or none that answers
        moves = Moves(connection, settings.circle_seconds, time.monotonic)
        backoff = Backoff(settings, snapshot, ended, moves)
        held, spared = gates.held(snapshot), gates.held_groups(snapshot)
        domains = failure_domains(config.ha, snapshot)
        return Asked(
            snapshot,
            plan_options(settings, spared, gates.frozen_hosts(snapshot), domains),
            settings,
            backoff.holding(held, spared),
            partial(_why_not_now, gates.unrenewed(), snapshot),
            partial(_frozen_while_emptying, gates.unrenewed(), snapshot, backoff.frozen),
        )


def _why_not_now(gates: Gates, snapshot: Snapshot, plan: Plan) -> str | None:
    """What holds back the first step of a plan, and so all that waits for it."""
    first = next((step for step in plan.steps if not step.after), None)
    closed = None if first is None else gates.blocked_reason(snapshot, plan.cluster, first, plan)
    return None if closed is None else str(closed)


def _frozen_while_emptying(
    gates: Gates, snapshot: Snapshot, by_history: Mapping[str, str], hosts: Collection[str]
) -> Mapping[str, str]:
    emptied = replace(snapshot, draining_hosts=tuple({*snapshot.draining_hosts, *hosts}))
    return {**by_history, **gates.frozen(emptied)}


def current_gates(settings: EnforcerSettings, connection: EngineConnection, stores: Stores) -> Gates:
    """The gates; where there is no store yet, or none that answers, by the configuration alone.

    Raises what asking the engine for what is tagged raises. Nothing is written.
    """
    tag = settings.exclude_tag
    tagged = tagged_ids(connection, tag) if tag else frozenset[str]()
    try:
        return Memory(settings, stores, lambda: tagged).gates()
    except StoreAway:
        return Gates(settings, Remembered(tagged=tagged), (), datetime.now(UTC))


_DEADLINE_SECONDS = 30.0


def way_back(config: Config, snapshot: Snapshot, record: PlanRecord) -> PlansBack:
    """The migrations, and which VMs stay where the plan took them. Raises `UserError`."""
    if record.cluster not in snapshot.cluster_by_id:
        raise UserError(f"plan {record.id}: its cluster {record.cluster} is no more")
    settings = config.section("enforcer", EnforcerSettings)
    with connect(config.engine) as connection, closing(Stores(config, create=False)) as stores:
        held = current_gates(settings, connection, stores).frozen(snapshot)
    deadline = Deadline.after(_DEADLINE_SECONDS)
    undoing = plan_back(snapshot, record.cluster, moved_by(record), held, deadline)
    plans = plans_record([undoing.plan], snapshot)
    kept = (KeptVm(vm, vm_name(vm, snapshot), kept_text(why, snapshot)) for vm, why in undoing.kept.items())
    return PlansBack(**msgspec.structs.asdict(plans), undoes=record.id, kept=tuple(kept))


def moved_by(record: PlanRecord) -> tuple[Moved, ...]:
    """What became of the VMs that a plan moved: where each began, and where the plan left it in the end."""
    found: dict[str, Moved] = {}
    for one in record.migrations:
        if one.state is IntentState.DONE and one.source is not None:
            began = found[one.vm].source if one.vm in found else one.source
            found[one.vm] = Moved(one.vm, began, one.target)
    return tuple(found.values())
