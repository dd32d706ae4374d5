"""Whether a plan that was made a while ago still fits its cluster, and in which way it does not."""

from __future__ import annotations

from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.legality import legal, vetoes
from ovirt_placement.planning.obstacles import Obstacle, ObstacleKind
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.planning.verification import apply
from ovirt_placement.rules.violations import find_violations


class Misfit(NamedTuple):
    """Why a plan must not be carried out any more."""

    obstacle: Obstacle
    #: The number of the step, from 1, that it concerns; None if it is about the plan as a whole.
    step: int | None = None


def misfit(snapshot: Snapshot, plan: Plan) -> Misfit | None:
    """Why a plan must not be carried out now; None if it may.

    Every step must begin where its VMs are and be legal in its turn, and in the end the very rules must be
    violated that the plan said: where rules were changed since, others are.
    """
    if plan.cluster not in snapshot.cluster_by_id:
        return Misfit(Obstacle(ObstacleKind.CLUSTER_GONE))
    state = snapshot
    for number, step in enumerate(plan.steps, 1):
        why = _why_not(state, step)
        if why is not None:
            return Misfit(why, number)
        state = apply(state, step)
    return _other_end(state, plan)


def _why_not(state: Snapshot, step: Step) -> Obstacle | None:
    for vm, source in zip(step.vms, step.sources, strict=True):
        known = state.vm_by_id.get(vm)
        if known is None:
            return Obstacle(ObstacleKind.VM_GONE, (vm,))
        if known.host != source:
            there = () if known.host is None else (known.host,)
            return Obstacle(ObstacleKind.ELSEWHERE, (vm,), (source, *there))
    if step.target not in state.host_by_id:
        return Obstacle(ObstacleKind.HOST_GONE, hosts=(step.target,))
    if legal(state, step):
        return None
    cluster = state.vm_by_id[step.vms[0]].cluster
    found = tuple(reason for _, reason in vetoes(state, cluster, step.vms, step.target))
    return Obstacle(ObstacleKind.REFUSED, step.vms, (step.target,), reasons=found)


def _other_end(end: Snapshot, plan: Plan) -> Misfit | None:
    said = {(rule.family, rule.groups, rule.hard) for rule in plan.remaining}
    found = {(one.constraint.family, one.groups, one.hard) for one in find_violations(end, plan.cluster)}
    if said == found:
        return None
    groups = sorted({group for _, groups, _ in said ^ found for group in groups})
    return Misfit(Obstacle(ObstacleKind.RULES_CHANGED, groups=tuple(groups)))
