"""Maintenance runs as people request, pause, resume and stop them: by commands, and on the page."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final, NamedTuple

from ovirt_enforcer import configured
from ovirt_enforcer.gates.people import rule_key
from ovirt_enforcer.on_request.orders import check_acts, check_running
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.answers.plans.maintenance import maintenance_record
from ovirt_placement.config import Config
from ovirt_placement.model import Cluster, Host, Snapshot
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.maintenance.data import MaintenanceOptions
from ovirt_placement.planning.maintenance.planner import plan_maintenance
from ovirt_placement.rules.failover.units import Domain
from ovirt_placement.rules.violations import find_violations
from ovirt_placement.store.maintenance import MaintenanceStore
from ovirt_placement.store.maintenance_run import MaintenanceRequest, RunState, Work
from ovirt_service.errors import UserError


class RunOrder(NamedTuple):
    """What becomes of a run that is under way in one of some states, and how that is reported."""

    state: RunState
    after: tuple[RunState, ...]
    said: str


ORDERS: Final = {
    "pause": RunOrder(
        RunState.PAUSED, (RunState.RUNNING,), "is paused: what is under way goes on, nothing new begins"
    ),
    "resume": RunOrder(RunState.RUNNING, (RunState.PAUSED,), "goes on"),
    "stop": RunOrder(
        RunState.STOPPING,
        (RunState.RUNNING, RunState.PAUSED),
        "is to end: a host that is out of service is brought up first",
    ),
}


class RunMeant(NamedTuple):
    """A run that may be requested."""

    cluster: Cluster
    #: In the order in which they are taken.
    hosts: tuple[Host, ...]
    request: MaintenanceRequest
    #: Keys of the rules that are violated before.
    violated: tuple[str, ...]


def check_settings(config: Config, work: Work) -> None:
    """Raise `UserError` if the enforcer, as it is set, would not carry out such a run."""
    settings = config.section("enforcer", EnforcerSettings)
    if work is Work.COMMAND and not settings.maintenance.command:
        raise UserError("--work command needs a command in [enforcer.maintenance]")
    check_acts(config, Mode.ENFORCE)


def run_meant(
    config: Config, snapshot: Snapshot, hosts: Sequence[Host], request: MaintenanceRequest
) -> RunMeant:
    """These hosts of one cluster, in this order. Raises `UserError` if nobody is there to do it."""
    if len({host.cluster for host in hosts}) > 1:
        raise UserError("these hosts are of several clusters: begin a run for each")
    check_running(config)
    cluster = snapshot.cluster_by_id[hosts[0].cluster]
    violated = tuple(rule_key(one) for one in find_violations(snapshot, cluster.id))
    return RunMeant(cluster, tuple(hosts), request, violated)


def begin(store: MaintenanceStore, meant: RunMeant, *, requested_by: str) -> str:
    """Have the leading enforcer begin a run; its id. Raises `UnderWay` where the cluster has one."""
    run_id = secrets.token_hex(3)
    store.request(
        run_id,
        (meant.cluster.id, meant.cluster.name),
        [(host.id, host.name) for host in meant.hosts],
        meant.request,
        requested_by=requested_by,
        violated=meant.violated,
    )
    return run_id


def domains_of(config: Config, snapshot: Snapshot) -> tuple[Domain, ...]:
    """The failure domains that are to be survived, too."""
    return configured.domains(config.ha, snapshot) or ()


def in_order_of_plan(
    snapshot: Snapshot,
    hosts: Sequence[Host],
    stop_vms: Sequence[str],
    domains: tuple[Domain, ...],
    *,
    deadline: Deadline,
) -> tuple[Host, ...]:
    """The hosts in the order of fewest migrations. Raises `UserError` if some host cannot become empty."""
    options = MaintenanceOptions(stopped=frozenset(stop_vms), domains=domains, explained=False)
    plan = plan_maintenance(snapshot, [host.id for host in hosts], options, deadline)
    if plan.blocked:
        left = maintenance_record(plan, snapshot).without_round
        why = "; ".join(
            f"{one.host.name}: {', '.join(obstacle.text for obstacle in one.obstacles)}" for one in left
        )
        names = " ".join(one.host.name for one in left)
        raise UserError(
            f"no round for {why}; ovirt-enforcer maintenance plan {names} says what would help; --in-order"
            " begins without a plan"
        )
    return tuple(snapshot.host_by_id[host] for host in plan.hosts)
