"""What people order, by commands or on the page: plans carried out, and maintenance runs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ovirt_enforcer.gates.people import moves, rule_key
from ovirt_enforcer.plans import failure_domains, maintenance_planned
from ovirt_enforcer.settings import EnforcerSettings, Mode, recorded_settings
from ovirt_placement.answers.document import typed
from ovirt_placement.answers.plans import misfit_text
from ovirt_placement.answers.plans.text import plan_of
from ovirt_placement.answers.status import NOT_RUNNING, not_led
from ovirt_placement.config import Config, HaSettings
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import Host, Snapshot
from ovirt_placement.planning.maintenance.site import MaintenanceOptions
from ovirt_placement.planning.plan import Deadline, Plan
from ovirt_placement.planning.steps import misfit
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.leader import EnforcerSettingsStore
from ovirt_placement.store.enforcer.maintenance import HostProgress, MaintenanceRequest, MaintenanceRun, Work
from ovirt_placement.store.orders import ALL_CLUSTERS, ApprovalStore, PauseStore
from ovirt_placement.store.sql.access import opened, stored
from ovirt_service.errors import UserError


def settings_in_force(config: Config) -> Mapping[str, Any]:
    """The settings by their names, in plain values. Raises `StoreAway`."""
    leader_settings = stored(EnforcerSettingsStore, config, EnforcerSettingsStore.leader_settings, None)
    if leader_settings is not None:
        return leader_settings
    return recorded_settings(config.section("enforcer", EnforcerSettings))


#: How long a person waits for the engine who has looked at a plan.
_ENGINE_SECONDS = 30.0


class Misfits(UserError):
    """The cluster has changed beneath a plan; the text says what."""


def check_orders(config: Config, snapshot: Snapshot, plans: Iterable[Plan]) -> None:
    """Raise `UserError` if plans could not be carried out: they fit no more, or no enforcer leads."""
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
    """Why no plan is carried out in this cluster, even if a person lets it; None if plans are."""
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


def order_looked_at(config: Config, document: Mapping[str, Any], *, set_by: str, undoes: str | None) -> None:
    """Have one plan carried out, if it fits the engine as it is now. Raises `Misfits`, `UserError`."""
    snapshot = inventory.snapshot(config=config, max_age=0.0, deadline=_ENGINE_SECONDS)
    check_orders(config, snapshot, [plan_of(document)])
    order(config, [document], set_by=set_by, undoes=undoes)


def check_settings(config: Config, work: Work) -> None:
    """Raise `UserError` if the enforcer, as it is set, would not carry out such a run."""
    settings = config.section("enforcer", EnforcerSettings)
    if work is Work.COMMAND and not settings.maintenance.command:
        raise UserError("--work command needs a command in [enforcer.maintenance]")
    check_acts(config, Mode.ENFORCE)


def run_meant(
    config: Config,
    snapshot: Snapshot,
    hosts: Sequence[Host],
    request: MaintenanceRequest,
    *,
    requested_by: str,
) -> MaintenanceRun:
    """A run of these hosts of one cluster, as it is to be requested. Raises `UserError`."""
    check_running(config)
    cluster = snapshot.cluster_by_id[hosts[0].cluster]
    numbered = enumerate(hosts)
    return MaintenanceRun(
        cluster=cluster.id,
        cluster_name=cluster.name,
        request=request,
        requested_by=requested_by,
        violated=tuple(rule_key(one) for one in find_violations(snapshot, cluster.id)),
        hosts=tuple(HostProgress(host=one.id, name=one.name, position=at) for at, one in numbered),
    )


def in_order_of_plan(
    snapshot: Snapshot, hosts: Sequence[Host], stop_vms: Sequence[str], ha: HaSettings, *, deadline: Deadline
) -> tuple[Host, ...]:
    """The hosts in the order of fewest migrations. Raises `UserError` if some host cannot become empty."""
    domains = failure_domains(ha, snapshot) or ()
    options = MaintenanceOptions(stopped=frozenset(stop_vms), domains=domains, explained=False)
    plan = maintenance_planned(snapshot, [host.id for host in hosts], options, deadline=deadline)
    if left := plan.without_round:
        why = "; ".join(
            f"{one.host.name}: {', '.join(obstacle.text for obstacle in one.obstacles)}" for one in left
        )
        names = " ".join(typed(one.host, snapshot.hosts) for one in left)
        raise UserError(
            f"no round for {why}; ovirt-enforcer maintenance plan {names} says what would help; --in-order"
            " begins without a plan"
        )
    return tuple(snapshot.host_by_id[host.id] for one in plan.rounds for host in one.hosts)
