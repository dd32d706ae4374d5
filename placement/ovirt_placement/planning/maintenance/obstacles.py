"""Why hosts get no round: their state, VMs that cannot leave, and the rules and limits in the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.maintenance.data import BlockedHost
from ovirt_placement.planning.maintenance.leaving import Leaving, leaving
from ovirt_placement.planning.maintenance.reserve import Reserve, out
from ovirt_placement.planning.maintenance.site import Site
from ovirt_placement.planning.obstacles import Obstacle, ObstacleKind
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from ovirt_placement.planning.verification import apply


def shut_hosts(site: Site) -> Mapping[str, BlockedHost]:
    """Hosts that cannot be emptied whatever is moved, with the reason."""
    found = {}
    for host in site.asked:
        fault, staying = site.at_fault(host), site.staying(host)
        if fault is not None or staying:
            obstacles = (*([] if fault is None else [fault]), *staying.values())
            found[host] = BlockedHost(host=host, vms=tuple(staying), obstacles=obstacles)
    return found


def blocked_hosts(
    site: Site, reserve: Reserve, hosts: Sequence[str], state: Snapshot, deadline: Deadline
) -> Iterator[BlockedHost]:
    """What stands in the way of hosts once all others have been maintained."""
    for host in hosts:
        if deadline.over or not site.options.explained:
            yield BlockedHost(host=host, vms=(), obstacles=(Obstacle(ObstacleKind.NOT_FOUND, hosts=(host,)),))
            continue
        plan = _emptying(site, host, state, deadline)
        staying = [one for one in plan.remaining if one.family == Leaving.family]
        obstacles = dict.fromkeys(obstacle for one in staying for obstacle in one.obstacles)
        if not staying:
            obstacles = dict.fromkeys(_of_reserve(site, reserve, host, plan, state))
        yield BlockedHost(
            host=host, vms=tuple(vm for one in staying for vm in one.vms), obstacles=tuple(obstacles)
        )


def _emptying(site: Site, host: str, state: Snapshot, deadline: Deadline) -> Plan:
    """The plan that takes as many VMs off a host as can leave it."""
    options = PlanOptions(
        closed=frozenset({host}) | site.never,
        constraints=tuple(leaving(state, (host,))),
        spared=frozenset(group for group in state.group_by_id),
    )
    return make_plan(
        state,
        site.cluster,
        site.options.frozen,
        refused=site.refused,
        options=options,
        deadline=deadline.within(0.5),
    )


def _of_reserve(site: Site, reserve: Reserve, host: str, plan: Plan, state: Snapshot) -> Iterator[Obstacle]:
    """What fails less well while an empty host is out."""
    end = state
    for step in plan.steps:
        end = apply(end, step)
    found = reserve.worse(out(end, {host}, site.stopped_on(host)))
    if found is None or reserve.start is None or not found.losses:
        yield Obstacle(ObstacleKind.NOT_FOUND, hosts=(host,))
        return
    worst = max(found.losses, key=lambda loss: len(loss.unplaced))
    yield Obstacle(
        ObstacleKind.RESERVATION,
        tuple(vm for step in plan.steps for vm in step.vms),
        worst.hosts,
        unplaced=worst.unplaced,
        needed=found.unplaced,
        available=reserve.start.unplaced,
    )
