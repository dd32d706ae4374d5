"""What each obstacle of a maintenance would free, if it alone were relaxed: planned again without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace as with_fields

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.model.maintenance import Return
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.maintenance.data import MaintenanceOptions, MaintenancePlan, Relaxation
from ovirt_placement.planning.obstacles import Obstacle, ObstacleKind

#: This many are tried, the first of each host before others.
_MOST_TRIED = 12
#: The share of the time that is left for each of them.
_SHARE = 0.3

Planner = Callable[[Snapshot, MaintenanceOptions, Deadline], MaintenancePlan]


def relaxations(
    snapshot: Snapshot,
    options: MaintenanceOptions,
    plan: MaintenancePlan,
    planner: Planner,
    deadline: Deadline,
) -> Iterator[Relaxation]:
    """Of obstacles that somebody may relax, what each frees; as far as there is time to plan."""
    quick = with_fields(options, explained=False, back=Return.NONE)
    known = frozenset(plan.hosts)
    for obstacle in list(_relaxable(plan))[:_MOST_TRIED]:
        if deadline.over:
            return
        state, asked = _without(snapshot, quick, obstacle)
        found = planner(state, asked, deadline.within(_SHARE))
        yield Relaxation(obstacle=obstacle, hosts=tuple(host for host in found.hosts if host not in known))


def _relaxable(plan: MaintenancePlan) -> Iterator[Obstacle]:
    seen = set()
    for one in plan.blocked:
        for obstacle in (found for every in one.obstacles for found in _parts(every)):
            key = obstacle.kind, obstacle.groups or obstacle.vms
            if key not in seen:
                seen.add(key)
                yield obstacle


def _parts(obstacle: Obstacle) -> Iterator[Obstacle]:
    """What of an obstacle may be relaxed; a filter's refusal names the group that it is for."""
    groups = dict.fromkeys(reason.group for reason in obstacle.reasons if reason.group is not None)
    for group in groups:
        yield Obstacle(ObstacleKind.RULE, obstacle.vms, groups=(group,), asks="as it asks")
    held = obstacle.kind is ObstacleKind.STAYS and (obstacle.reasons or obstacle.words)
    # What maintenance itself asks for is no rule of anybody's, and has no groups.
    rule = obstacle.kind is ObstacleKind.RULE and obstacle.groups
    if held or rule or obstacle.kind is ObstacleKind.OUT:
        yield obstacle


def _without(
    snapshot: Snapshot, options: MaintenanceOptions, obstacle: Obstacle
) -> tuple[Snapshot, MaintenanceOptions]:
    """The state without a rule or a reservation; or with consent that VMs are stopped."""
    if obstacle.kind is ObstacleKind.STAYS:
        vms = frozenset(obstacle.vms)
        frozen = {vm: why for vm, why in options.frozen.items() if vm not in vms}
        return snapshot, with_fields(options, frozen=frozen, stopped=options.stopped | vms)
    if obstacle.kind is ObstacleKind.RULE:
        groups = frozenset(obstacle.groups)
        return replace(
            snapshot,
            affinity_groups=tuple(one for one in snapshot.affinity_groups if one.id not in groups),
            affinity_labels=tuple(
                replace(one, implicit=False) if one.id in groups else one for one in snapshot.affinity_labels
            ),
            placement_rules=tuple(one for one in snapshot.placement_rules if one.id not in groups),
        ), options
    clusters = tuple(replace(one, ha_reservation=False) for one in snapshot.clusters)
    return replace(snapshot, clusters=clusters), options
