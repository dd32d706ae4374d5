"""Which steps of a plan still fit a cluster that has changed: what does not depend on the change goes on."""

from __future__ import annotations

from collections.abc import Collection, Set

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan
from ovirt_placement.rules.violations import find_violations
from ovirt_placement.rules.world import World


def fitting_steps(
    plan: Plan, ahead: Set[int], given_up: Collection[int], projection: Snapshot, frozen: Set[str]
) -> frozenset[int]:
    """Those of the steps `ahead`, by their places, that start where VMs are and repair what they say.

    Without one that does not, those fit neither that wait for it, that only make room for it, or that repair
    a group together with it. If what is left would violate a satisfied rule, and that the whole plan was not
    to break, nothing fits.
    """
    kept = frozenset(ahead)
    # A step may repair what a later one violates again, for a rule that counts more.
    remains_violated = {group for rule in plan.remaining for group in rule.groups}
    while True:
        end, movable = _end(plan, kept, projection, frozen)
        violated = violated_groups(end, plan.cluster)
        lost = {group for place in ahead - kept for group in plan.steps[place].repairs}
        without = {*given_up, *(ahead - kept)}
        left = frozenset(
            place
            for place in movable
            if without.isdisjoint(plan.steps[place].after)
            and (violated - remains_violated).isdisjoint(plan.steps[place].repairs)
            and not _helps_nobody(plan, place, without, lost)
        )
        if left == kept:
            allowed = remains_violated | violated_groups(projection, plan.cluster)
            return kept if kept == ahead or violated <= allowed else frozenset()
        kept = left


def violated_groups(snapshot: Snapshot, cluster: str) -> frozenset[str]:
    """The groups of a cluster that are violated; none if it is gone."""
    if cluster not in snapshot.cluster_by_id:
        return frozenset()
    return frozenset(group for found in find_violations(snapshot, cluster) for group in found.groups)


def _end(
    plan: Plan, kept: Set[int], projection: Snapshot, frozen: Set[str]
) -> tuple[Snapshot, frozenset[int]]:
    """The cluster after these steps, and those of them that start where their VMs are."""
    where = {vm.id: vm.host for vm in projection.vms}
    moved: dict[str, str] = {}
    movable = set()
    for place in sorted(kept):
        step = plan.steps[place]
        starts = zip(step.vms, step.sources, strict=True)
        if all(vm not in frozen and where.get(vm) == source for vm, source in starts):
            movable.add(place)
            moved.update(dict.fromkeys(step.vms, step.target))
            where |= moved
    return World(projection).arrived(moved, source_freed=False).snapshot, frozenset(movable)


def _helps_nobody(plan: Plan, place: int, without: Collection[int], lost: Collection[str]) -> bool:
    """Whether all is left out that a step helps: groups repaired with others, or steps that need room."""
    step = plan.steps[place]
    if step.repairs or step.reserves:
        return False
    if step.groups:
        return all(group in lost for group in step.groups)
    helped = [later for later, other in enumerate(plan.steps) if place in other.after]
    return bool(helped) and all(later in without for later in helped)
