"""Plans the repair of one cluster's hard VM groups: pure, deterministic, certified by the rules."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ovirt_enforcer.planning.obstacles import remaining
from ovirt_enforcer.planning.plan import Plan, Step
from ovirt_enforcer.planning.problem import Move, pose
from ovirt_enforcer.planning.solve import GROUP_BUDGET, WHOLE_BUDGET, solve
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity import host_filter, vm_filter
from ovirt_placement.rules.verdict import Request
from ovirt_placement.rules.violations import Family, Violation, find_violations

#: Why a VM is to be left alone for now, by VM id: a sentence.
Held = Mapping[str, str]


def make_plan(
    snapshot: Snapshot,
    cluster: str,
    held: Held | None = None,
    group_budget: int = GROUP_BUDGET,
    whole_budget: int = WHOLE_BUDGET,
) -> Plan:
    """The fewest migrations that mend the most broken hard VM groups of a cluster.

    VMs in `held` stay where they are. The budgets bound the work, not the time: the same input gives the
    same plan on every machine.
    """
    held = held or {}
    if not broken_groups(snapshot, cluster):
        return Plan(cluster=cluster)
    problem = pose(snapshot, cluster, held)
    solution = solve(problem, group_budget, whole_budget)
    steps = []
    after = snapshot
    for move in solution.moves:
        step = _step(after, cluster, move)
        if not legal(after, step):
            raise AssertionError(f"the rules refuse a planned step: {step}")
        after = apply(after, step)
        steps.append(step)
    return Plan(
        cluster=cluster,
        steps=tuple(steps),
        remaining=tuple(
            remaining(after, violation, pose(after, cluster, held), held, proven=solution.proven)
            for violation in broken_groups(after, cluster)
        ),
        proven=solution.proven,
        at_least=solution.at_least,
    )


def broken_groups(snapshot: Snapshot, cluster: str) -> tuple[Violation, ...]:
    """What the enforcer sees to: hard VM-to-VM groups that the running VMs of a cluster break."""
    return tuple(
        violation
        for violation in find_violations(snapshot, cluster)
        if violation.hard and violation.family is Family.VM_AFFINITY
    )


def holds(snapshot: Snapshot, plan: Plan, held: Held) -> bool:
    """Whether the steps of a plan are still legal, one after the other, and still lead to what it says."""
    for step in plan.steps:
        if not legal(snapshot, step) or not held.keys().isdisjoint(step.vms):
            return False
        snapshot = apply(snapshot, step)
    left = {violation.groups for violation in broken_groups(snapshot, plan.cluster)}
    return left == {group.groups for group in plan.remaining}


def legal(snapshot: Snapshot, step: Step) -> bool:
    """Whether the rules, capacity and the state of VMs and target let a step be taken now."""
    vms = [snapshot.vm_by_id.get(vm) for vm in step.vms]
    target = snapshot.host_by_id.get(step.target)
    if target is None or not target.up:
        return False
    if any(
        vm is None or vm.host != source or vm.cluster != target.cluster or vm.status != "up" or not vm.movable
        for vm, source in zip(vms, step.sources, strict=True)
    ):
        return False
    if any(vm.pinned_hosts and step.target not in vm.pinned_hosts for vm in vms if vm is not None):
        return False
    request = Request(step.vms, (step.target,))
    verdicts = (*vm_filter.filter_hosts(snapshot, request), *host_filter.filter_hosts(snapshot, request))
    return all(verdict.accepted for verdict in verdicts) and target.free_mb >= sum(
        vm.memory_mb for vm in vms if vm is not None
    )


def apply(snapshot: Snapshot, step: Step) -> Snapshot:
    """The snapshot as it is once a step has succeeded."""
    freed = dict.fromkeys((*step.sources, step.target), 0)
    for vm, source in zip(step.vms, step.sources, strict=True):
        freed[source] += snapshot.vm_by_id[vm].memory_mb
        freed[step.target] -= snapshot.vm_by_id[vm].memory_mb
    return msgspec.structs.replace(
        snapshot,
        vms=tuple(
            msgspec.structs.replace(vm, host=step.target) if vm.id in step.vms else vm for vm in snapshot.vms
        ),
        hosts=tuple(
            msgspec.structs.replace(host, free_mb=host.free_mb + freed[host.id]) if host.id in freed else host
            for host in snapshot.hosts
        ),
    )


def _step(snapshot: Snapshot, cluster: str, move: Move) -> Step:
    sources = tuple(snapshot.vm_by_id[vm].host or "" for vm in move.vms)
    bare = Step(vms=move.vms, sources=sources, target=move.host, groups=(), mends=())
    before = _broken_ids(snapshot, cluster, move.vms)
    after = _broken_ids(apply(snapshot, bare), cluster, move.vms)
    return msgspec.structs.replace(
        bare, groups=before, mends=tuple(group for group in before if group not in after)
    )


def _broken_ids(snapshot: Snapshot, cluster: str, vms: tuple[str, ...]) -> tuple[str, ...]:
    """Broken groups that any of the VMs belongs to."""
    return tuple(
        group
        for violation in broken_groups(snapshot, cluster)
        if not {location.vm for location in violation.locations}.isdisjoint(vms)
        for group in violation.groups
    )
