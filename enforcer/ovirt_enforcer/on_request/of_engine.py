"""What people ask about, where it is the engine: its state, and what is held back now."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from ovirt_enforcer import configured
from ovirt_enforcer.actions.migrate_vm.backoff import REACH_SECONDS, Backoff
from ovirt_enforcer.actions.migrate_vm.origin import Origins
from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.on_request.current_gates import current_gates
from ovirt_enforcer.on_request.question import Asked
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.engine.connection.client import connect
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan
from ovirt_placement.store.database import StoreAway
from ovirt_placement.store.intents import Intent, Store
from ovirt_placement.store.opening import opened


def of_engine(config: Config, patience_seconds: float) -> Asked:
    """By the configuration, what is known of the engine, and what is held back now. Raises `UserError`.

    `patience_seconds` is how long a state of the engine is waited for.
    """
    settings = config.section("enforcer", EnforcerSettings)
    snapshot = inventory.snapshot(config=config, deadline=patience_seconds)
    with connect(config.engine) as connection, current_gates(config, connection) as gates:
        backoff = Backoff(settings, snapshot, _history(config), Origins(connection))
        spared = gates.held_groups(snapshot)
        domains = configured.domains(config.ha, snapshot)
        return Asked(
            snapshot,
            configured.options(settings, spared, gates.frozen_hosts(snapshot), domains),
            settings,
            {**backoff.frozen, **gates.frozen(snapshot)},
            spared,
            backoff.left_out,
            partial(_why_not_now, gates.unrenewed(), snapshot),
            partial(_frozen_while_emptying, gates.unrenewed(), snapshot, backoff.frozen),
        )


def _why_not_now(gates: Gates, snapshot: Snapshot, plan: Plan) -> str | None:
    """What holds back the first step of a plan, and so all that waits for it."""
    first = next((step for step in plan.steps if not step.after), None)
    closed = None if first is None else gates.why_closed(snapshot, plan.cluster, first, plan)
    return None if closed is None else str(closed)


def _frozen_while_emptying(
    gates: Gates, snapshot: Snapshot, by_history: Mapping[str, str], hosts: Collection[str]
) -> Mapping[str, str]:
    emptied = replace(snapshot, draining_hosts=tuple({*snapshot.draining_hosts, *hosts}))
    return {**by_history, **gates.frozen(emptied)}


def _history(config: Config) -> Sequence[Intent]:
    """The migrations that have ended; none where there is no store that answers."""
    try:
        with opened(Store, config, create=False) as intents:
            return intents.history(within_seconds=REACH_SECONDS)
    except StoreAway:
        return ()
