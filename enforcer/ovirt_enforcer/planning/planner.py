"""Plans the repair of one cluster's hard VM groups: pure, deterministic, certified by the rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from ovirt_enforcer.planning.legality import legal, vetoes
from ovirt_enforcer.planning.obstacles import remaining
from ovirt_enforcer.planning.plan import Plan, Refused, Step
from ovirt_enforcer.planning.posed import Move
from ovirt_enforcer.planning.posing import mends, pose
from ovirt_enforcer.planning.solve import GROUP_BUDGET, WHOLE_BUDGET, Solution, solve
from ovirt_placement.answers.sentences import sentence
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.violations import Violation, find_violations

#: Why a VM is to be left alone for now, by VM id: a sentence.
Held = Mapping[str, str]

#: So often a plan is made anew without a step that some rule refuses; after that, it ends before the step.
_MOST_REFUSALS = 20


class _Certified(NamedTuple):
    """Steps that the rules let pass, one after the other, the state after them, and the first one refused."""

    steps: tuple[Step, ...]
    after: Snapshot
    refused: Step | None


def make_plan(
    snapshot: Snapshot,
    cluster: str,
    held: Held | None = None,
    group_budget: int = GROUP_BUDGET,
    whole_budget: int = WHOLE_BUDGET,
) -> Plan:
    """The fewest migrations that mend the most broken hard VM groups of a cluster.

    VMs in `held` stay where they are. The budgets bound the work, not the time: the same input gives the
    same plan on every machine. Every step is held against all rules that count in the cluster, and against
    the engine's own filters; one that they refuse is dropped, and the plan made anew without it.
    """
    held = held or {}
    if not broken_groups(snapshot, cluster):
        return Plan(cluster=cluster, strategy="search")
    refused: dict[tuple[str, str], Refused] = {}
    while True:
        problem = pose(snapshot, cluster, held, refused)
        solution = solve(problem, group_budget, whole_budget)
        certified = _certify(snapshot, cluster, solution)
        step = certified.refused
        if step is None or len(refused) >= _MOST_REFUSALS:
            break
        refused |= _refusal(certified.after, cluster, step)
    proven = solution.proven and certified.refused is None and not problem.guessed
    return Plan(
        cluster=cluster,
        strategy="search",
        steps=certified.steps,
        remaining=tuple(
            remaining(certified.after, violation, pose(certified.after, cluster, held), held, proven=proven)
            for violation in broken_groups(certified.after, cluster)
        ),
        refused=tuple(dict.fromkeys(refused.values())),
        proven=proven,
        at_least=solution.at_least,
    )


def broken_groups(snapshot: Snapshot, cluster: str) -> tuple[Violation, ...]:
    """What the enforcer sees to, as far as the running VMs of a cluster break it."""
    return tuple(one for one in find_violations(snapshot, cluster) if mends(one.constraint))


def holds(snapshot: Snapshot, plan: Plan, held: Held) -> bool:
    """Whether the steps of a plan are still legal, one after the other, and still lead to what it says."""
    for step in plan.steps:
        if not legal(snapshot, step) or not held.keys().isdisjoint(step.vms):
            return False
        snapshot = apply(snapshot, step)
    left = {violation.groups for violation in broken_groups(snapshot, plan.cluster)}
    return left == {group.groups for group in plan.remaining}


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


def _certify(snapshot: Snapshot, cluster: str, solution: Solution) -> _Certified:
    steps: list[Step] = []
    for move in solution.moves:
        step = _step(snapshot, cluster, move)
        if not legal(snapshot, step):
            return _Certified(tuple(steps), snapshot, step)
        snapshot = apply(snapshot, step)
        steps.append(step)
    return _Certified(tuple(steps), snapshot, None)


def _refusal(snapshot: Snapshot, cluster: str, step: Step) -> dict[tuple[str, str], Refused]:
    """A step that the rules refuse in this state, by each VM and host that is not to be tried again."""
    because = tuple(
        dict.fromkeys(
            f"{rule.name}: {sentence(reason, snapshot)}"
            for rule, reason in vetoes(snapshot, cluster, step.vms, step.target)
        )
    )
    return dict.fromkeys(((vm, step.target) for vm in step.vms), Refused(step=step, because=because))


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
