"""Why hosts get no round: their state, VMs that cannot leave, and the rules and limits in the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.maintenance.data import BlockedHost
from ovirt_placement.planning.maintenance.leaving import Leaving
from ovirt_placement.planning.maintenance.reserve import Reserve, out
from ovirt_placement.planning.maintenance.site import Site
from ovirt_placement.planning.obstacles import Obstacle, ObstacleKind
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.verification import apply


def shut_hosts(site: Site) -> Mapping[str, BlockedHost]:
    """Hosts that cannot be emptied whatever is moved, with the reason."""
    found = {}
    for host in site.asked:
        fault, staying = site.at_fault(host), site.staying(host)
        if fault is not None or staying:
            # Of a host that does not answer that is said once, and not of each of its VMs.
            obstacles = (fault,) if fault is not None else tuple(staying.values())
            found[host] = BlockedHost(host=host, vms=tuple(staying), obstacles=obstacles)
    return found


def blocked_host(site: Site, reserve: Reserve, host: str, plan: Plan | None, state: Snapshot) -> BlockedHost:
    """What stands in the way of a host by the plan that was tried for it, if any was, in the last state."""
    if plan is None:
        return BlockedHost(host=host, vms=(), obstacles=(Obstacle(ObstacleKind.NO_ROUND),))
    staying = [one for one in plan.remaining if one.family == Leaving.family]
    obstacles = dict.fromkeys(obstacle for one in staying for obstacle in one.obstacles)
    if not staying:
        obstacles = dict.fromkeys(_of_reserve(site, reserve, host, plan, state))
    vms = tuple(vm for one in staying for vm in one.vms)
    return BlockedHost(host=host, vms=vms, obstacles=tuple(obstacles))


def _of_reserve(site: Site, reserve: Reserve, host: str, plan: Plan, state: Snapshot) -> Iterator[Obstacle]:
    """What fails less well while an empty host is out."""
    for step in plan.steps:
        state = apply(state, step)
    found = reserve.worse(out(state, {host}, site.stopped_on(host)))
    if found is None or reserve.start is None or not found.losses:
        yield Obstacle(ObstacleKind.NO_ROUND)
        return
    worst = max(found.losses, key=lambda loss: len(loss.unplaced))
    yield Obstacle(
        ObstacleKind.OUT,
        hosts=worst.hosts,
        unplaced=worst.unplaced,
        needed=found.unplaced,
        available=reserve.start.unplaced,
    )
