"""Plans the way back from a plan: its VMs to the hosts that they came from, as far as the rules let them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import NEVER, Deadline
from ovirt_placement.planning.ordering.sequence import sequence
from ovirt_placement.planning.plan import Obstacle, ObstacleKind, Plan, Step, StepPurpose
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.planning.unrepaired import End, remains
from ovirt_placement.planning.verification import certify, refusal
from ovirt_placement.rules.elements.placement import why_immovable
from ovirt_placement.rules.violations import Violation, find_violations

#: The word for it where a plan names its strategy.
STRATEGY = "undo"


_NO_WAY = Obstacle(ObstacleKind.NO_SEQUENCE)


class Moved(NamedTuple):
    """A VM that a plan moved: the host where it began, and the one where the plan left it."""

    vm: str
    source: str
    target: str


class Undoing(NamedTuple):
    """The way back, and why VMs do not go it, by id."""

    plan: Plan
    kept: Mapping[str, Obstacle]


def plan_back(
    snapshot: Snapshot,
    cluster: str,
    moved: tuple[Moved, ...],
    frozen: Mapping[str, str],
    deadline: Deadline = NEVER,
) -> Undoing:
    """The moves that bring VMs back to where they were, each of which the rules let pass.

    No hard rule is violated at the end that holds now: the VMs that would violate it stay. VMs in `frozen`
    do, too, with that as the reason, and those that were moved since.
    """
    kept = {one.vm: why for one in moved if (why := _why_kept(snapshot, cluster, one, frozen)) is not None}
    away = (one for one in moved if one.vm not in kept and snapshot.vm_by_id[one.vm].host != one.source)
    homes = {one.vm: one.source for one in away}
    while violated := _newly_violated(snapshot, cluster, homes):
        for vm in [vm for vm in homes if vm in violated]:
            kept[vm] = violated[vm]
            del homes[vm]
    refused: frozenset[tuple[str, str]] = frozenset()
    while True:
        problem = pose(snapshot, cluster, frozen, refused)
        found = sequence(problem, homes, deadline)
        certified = certify(snapshot, problem, found.moves)
        if certified.refused is None:
            break
        found_refused = refusal(certified.end, cluster, certified.refused)
        if found_refused.keys() <= refused:
            break
        refused |= found_refused.keys()
        for (vm, host), one in found_refused.items():
            if homes.get(vm) == host:
                reasons = tuple(reason for _, reason in one.vetoes)
                kept[vm] = Obstacle(ObstacleKind.REFUSED, (vm,), (host,), reasons=reasons)
                del homes[vm]
    after = {vm.id: vm.host for vm in certified.end.vms}
    lost = {vm: _NO_WAY for vm, host in homes.items() if after[vm] != host}
    proven = found.proven and not lost
    asks_no_repair = pose(certified.end, cluster, frozen, refused, PlanOptions(repair=frozenset()))
    plan = Plan(
        cluster=cluster,
        strategy=STRATEGY,
        steps=tuple(_homeward(step, homes) for step in certified.steps),
        remaining=remains(End(certified.end, asks_no_repair, frozen, proven), deadline),
        proven=proven,
        at_least=len(homes) - len(lost),
    )
    return Undoing(plan, {**kept, **lost})


def _homeward(step: Step, homes: Mapping[str, str]) -> Step:
    back = any(homes.get(vm) == step.target for vm in step.vms)
    return replace(step, purpose=StepPurpose.BACK) if back else step


def _why_kept(snapshot: Snapshot, cluster: str, moved: Moved, frozen: Mapping[str, str]) -> Obstacle | None:
    """Why a VM cannot go back, whatever the others do."""
    vm, home = snapshot.vm_by_id.get(moved.vm), snapshot.host_by_id.get(moved.source)
    if vm is None or vm.host is None or vm.cluster != cluster:
        return Obstacle(ObstacleKind.NOT_HERE, (moved.vm,))
    if vm.host == moved.source:
        return None
    if vm.host != moved.target:
        return Obstacle(ObstacleKind.ELSEWHERE, (vm.id,), (moved.target, vm.host))
    if home is None or not home.up:
        return Obstacle(ObstacleKind.HOME_DOWN, (vm.id,), (moved.source,))
    if moved.vm in frozen:
        return Obstacle(ObstacleKind.STAYS, (vm.id,), words=frozen[moved.vm])
    why = why_immovable(snapshot, vm)
    return None if why is None else Obstacle(ObstacleKind.STAYS, (vm.id,), reasons=(why,))


def _newly_violated(snapshot: Snapshot, cluster: str, homes: Mapping[str, str]) -> dict[str, Obstacle]:
    """VMs whose way back would violate a hard rule that is satisfied now, with that as the reason."""
    end = replace(
        snapshot,
        vms=tuple(replace(vm, host=homes[vm.id]) if vm.id in homes else vm for vm in snapshot.vms),
    )
    now = {_identity(violation) for violation in find_violations(snapshot, cluster) if violation.hard}
    return {
        vm: Obstacle(ObstacleKind.VIOLATES, (vm,), groups=violation.groups)
        for violation in find_violations(end, cluster)
        if violation.hard and _identity(violation) not in now
        for vm in violation.constraint.vms
    }


def _identity(violation: Violation) -> tuple[str, tuple[str, ...]]:
    return violation.constraint.family, violation.groups
