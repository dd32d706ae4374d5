"""Has plans carried out that a person has read: checked when they are ordered, then in the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ovirt_enforcer.gates.people import moves
from ovirt_enforcer.settings import EnforcerSettings, Mode, recorded_settings
from ovirt_placement import inventory
from ovirt_placement.answers.plans.plan import misfit_text
from ovirt_placement.answers.plans.reading import plan_of
from ovirt_placement.answers.status.enforcement import NOT_RUNNING, not_led
from ovirt_placement.config import Config
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.fitting import misfit
from ovirt_placement.planning.plan import Plan
from ovirt_placement.store.approvals import ApprovalStore
from ovirt_placement.store.enforcer_settings import EnforcerSettingsStore
from ovirt_placement.store.history import HistoryStore
from ovirt_placement.store.opening import opened, stored
from ovirt_placement.store.pauses import ALL_CLUSTERS, PauseStore
from ovirt_service.errors import UserError


def settings_in_force(config: Config) -> Mapping[str, Any]:
    """The settings by their names, in plain values. Raises `StoreAway`."""
    of_leader = stored(EnforcerSettingsStore, config, EnforcerSettingsStore.of_leader, None)
    if of_leader is not None:
        return of_leader
    return recorded_settings(config.section("enforcer", EnforcerSettings))


#: How long a person waits for the engine who has looked at a plan.
_ENGINE_SECONDS = 30.0


class Misfits(UserError):
    """The cluster has changed beneath a plan; the text says what."""


def check_orders(config: Config, snapshot: Snapshot, plans: Iterable[Plan]) -> None:
    """Raise `UserError` if plans could not be carried out: they fit no more, or nobody is there to do it."""
    for plan in plans:
        why = misfit(snapshot, plan)
        if why is not None:
            raise Misfits(f"plan {plan.id}: the cluster has changed beneath it: {misfit_text(why, snapshot)}")
    check_acts(config, Mode.APPROVE)
    check_running(config)


def check_acts(config: Config, wanted: Mode) -> None:
    """Raise `UserError` if the enforcer only observes: the one that leads, or else one that starts here."""
    if settings_in_force(config)["mode"] == Mode.OBSERVE:
        raise UserError(
            f'ovirt-enforcer is in observe mode: set mode = "{wanted}" in [enforcer], and restart it'
        )


def check_running(config: Config) -> None:
    """Raise `UserError` if no enforcer leads that could carry anything out."""
    why, engine = not_led(config), config.engine.name
    if why == NOT_RUNNING:
        raise UserError(f"{why} for engine {engine}: start it with ovirt-enforcer run")
    if why is not None:
        raise UserError(f"of the enforcers of engine {engine}, {why}")


def obstacle(config: Config, wanted: Mode, cluster: str) -> str | None:
    """Why no plan is carried out in this cluster, even if a person lets it; None if plans are.

    No enforcer runs or can write the store, the one that leads only observes, or somebody paused the cluster.
    """
    try:
        check_acts(config, wanted)
        check_running(config)
    except UserError as error:
        return str(error)
    pauses = stored(PauseStore, config, PauseStore.pauses, ())
    return next((pause.sentence for pause in pauses if pause.cluster in (ALL_CLUSTERS, cluster)), None)


def order(
    config: Config, documents: Sequence[Mapping[str, Any]], *, set_by: str, undoes: str | None = None
) -> None:
    """Have the enforcer carry out plans, given as documents; `undoes` is the one that they take back."""
    with opened(HistoryStore, config) as history, opened(ApprovalStore, config) as approvals:
        for document in documents:
            plan = plan_of(document)
            history.record_plan(plan.id, plan.cluster, document)
            approvals.order(plan.cluster, plan.id, moves(plan), set_by=set_by, undoes=undoes)


def order_looked_at(
    config: Config, document: Mapping[str, Any], *, set_by: str, undoes: str | None = None
) -> None:
    """Have one plan carried out, if it fits the engine as it is now. Raises `Misfits`, `UserError`."""
    snapshot = inventory.snapshot(config=config, max_age=0.0, deadline=_ENGINE_SECONDS)
    check_orders(config, snapshot, [plan_of(document)])
    order(config, [document], set_by=set_by, undoes=undoes)
