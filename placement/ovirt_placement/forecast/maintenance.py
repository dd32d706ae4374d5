"""Empties hosts for maintenance, by migrations that keep every rule, before the engine deactivates them.

The engine itself drops hard rules between VMs when it drains a host (its configuration value
`IgnoreVmToVmAffinityForHostMaintenance`); a host that is empty already leaves it nothing to drop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import NEVER, Deadline
from ovirt_placement.planning.maintenance.data import Leaving, leaving
from ovirt_placement.planning.plan import Obstacle, ObstacleKind, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.planning.verification import apply
from ovirt_placement.rules.elements.memory import required_mb
from ovirt_placement.rules.elements.placement import expected_by_engine, moved_by_engine
from ovirt_placement.rules.elements.world import World
from ovirt_placement.rules.violations import find_violations


@dataclass(frozen=True, slots=True)
class Staying:
    """A VM that cannot leave its host."""

    vm: str
    host: str
    obstacles: tuple[Obstacle, ...]


@dataclass(frozen=True, slots=True)
class Evacuation:
    """What it takes to empty hosts of one cluster."""

    cluster: str
    hosts: tuple[str, ...]
    plan: Plan
    #: VMs that the engine itself moves, each with the host that it is expected on.
    by_engine: tuple[tuple[str, str], ...]
    #: VMs that no migration of the plan takes off these hosts.
    staying: tuple[Staying, ...]


def evacuate(
    state: Snapshot, hosts: Sequence[str], deadline: Deadline = NEVER
) -> tuple[tuple[Evacuation, ...], Snapshot]:
    """Empty hosts, cluster by cluster, and deactivate them; the state at the end.

    A host that some VM cannot leave does not arrive in maintenance: it remains in preparing_for_maintenance.
    """
    found = []
    for cluster in dict.fromkeys(state.host_by_id[host].cluster for host in hosts):
        concerned = tuple(host for host in hosts if state.host_by_id[host].cluster == cluster)
        evacuation = _evacuation(state, cluster, concerned, deadline)
        state = World(end_of(state, evacuation.plan)).migrated(dict(evacuation.by_engine)).snapshot
        found.append(evacuation)
    return tuple(found), World(state).deactivated(frozenset(hosts)).snapshot


def _evacuation(state: Snapshot, cluster: str, hosts: tuple[str, ...], deadline: Deadline) -> Evacuation:
    violated = find_violations(state, cluster)
    to_leave = tuple(leaving(state, hosts))
    options = PlanOptions(
        repair=frozenset({Repair.HARD}),
        spared=frozenset(group for one in violated for group in one.constraint.groups),
        closed=frozenset(hosts),
        constraints=tuple(one for one in to_leave if not moved_by_engine(state.vm_by_id[one.vms[0]])),
    )
    plan = repeated_plan(state, cluster, options, deadline)
    engines = [one.vms[0] for one in to_leave if one not in options.constraints]
    targets = {vm: _expected_host(end_of(state, plan), vm, hosts) for vm in engines}
    by_engine = tuple((vm, host) for vm, host in targets.items() if host is not None)
    unplaced = [
        Staying(vm, state.vm_by_id[vm].host or "", (Obstacle(ObstacleKind.NO_HOST),))
        for vm, host in targets.items()
        if host is None
    ]
    return Evacuation(cluster, hosts, plan, by_engine, (*_staying(state, plan), *unplaced))


def _expected_host(state: Snapshot, vm: str, closed: Sequence[str]) -> str | None:
    known = state.vm_by_id[vm]
    free_mb = {
        host.id: host.free_mb
        for host in state.hosts_of_cluster[known.cluster]
        if host.up and host.id not in closed
    }
    return expected_by_engine(required_mb(known), free_mb.__getitem__, free_mb)


def _staying(state: Snapshot, plan: Plan) -> Iterator[Staying]:
    for one in plan.remaining:
        if one.family == Leaving.family:
            (vm,) = one.vms
            yield Staying(vm, state.vm_by_id[vm].host or "", one.obstacles)


# -- A plan for as much as can be repaired: made again from its end where a first one leaves something.
#: The share of the time for the first plan, and how many others may follow it.
_FIRST_SHARE = 0.7
_MOST_PLANS = 5


def repeated_plan(state: Snapshot, cluster: str, options: PlanOptions, deadline: Deadline) -> Plan:
    """Plan as the enforcer does, which plans again in each cycle until nothing more can be repaired."""
    whole = latest = make_plan(state, cluster, options=options, deadline=deadline.within(_FIRST_SHARE))
    for _ in range(_MOST_PLANS):
        if latest.proven or not latest.steps or deadline.over:
            break
        latest = make_plan(end_of(state, whole), cluster, options=options, deadline=deadline)
        whole = _joined(whole, latest)
    return whole


def end_of(state: Snapshot, plan: Plan) -> Snapshot:
    """The state once a plan is carried out."""
    for step in plan.steps:
        state = apply(state, step)
    return state


def _joined(first: Plan, then: Plan) -> Plan:
    count = len(first.steps)
    later = (
        replace(step, after=tuple(count + place for place in step.after) or tuple(range(count)))
        for step in then.steps
    )
    return replace(
        first,
        steps=(*first.steps, *later),
        remaining=then.remaining,
        seconds=first.seconds + then.seconds,
        proven=False,
    )
