"""Holds each step of an order against all rules that count, in the state that the steps before it lead to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.following import Following
from ovirt_placement.planning.legality import vetoes
from ovirt_placement.planning.ordering.duration import Pace, step_seconds
from ovirt_placement.planning.ordering.order import OrderedMove
from ovirt_placement.planning.plan import RefusedStep, Step, StepPurpose
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.rules.world import World


class Certified(NamedTuple):
    """Steps that the rules let pass, one after the other, the state after them, and the first one refused."""

    steps: tuple[Step, ...]
    end: Snapshot
    refused: Step | None


def certify(snapshot: Snapshot, problem: Problem, moves: Sequence[OrderedMove]) -> Certified:
    """The steps of an order as far as all rules let them pass."""
    steps: list[Step] = []
    placement, state = ProblemPlacement(problem), Following(snapshot, problem.cluster)
    for ordered in moves:
        bare = _step(placement, ordered)
        step = replace(bare, seconds=step_seconds((snapshot.vm_by_id[vm] for vm in bare.vms), Pace()))
        if not state.take(step):
            return Certified(tuple(steps), state.state(), step)
        steps.append(step)
    return Certified(tuple(steps), state.state(), None)


def apply(snapshot: Snapshot, step: Step) -> Snapshot:
    """The snapshot as it is once a step has succeeded."""
    return World(snapshot).moved(step.vms, step.target).snapshot


def refusal(snapshot: Snapshot, cluster: str, step: Step) -> dict[tuple[str, str], RefusedStep]:
    """A step that the rules refuse in this state, by each VM and host that is not to be tried again."""
    found = tuple((rule.name, reason) for rule, reason in vetoes(snapshot, cluster, step.vms, step.target))
    return dict.fromkeys(((vm, step.target) for vm in step.vms), RefusedStep(step=step, vetoes=found))


def _step(placement: ProblemPlacement, ordered: OrderedMove) -> Step:
    """The move as a step; the placement goes along."""
    move = ordered.move
    vms = tuple(sorted(move.vms))  # in whatever order the engine listed them
    sources = tuple(placement.where(vm) for vm in vms)
    before = dict.fromkeys(_violated_ids(placement, move))
    purpose = _purpose(placement, move)
    placement.move(move.vms, move.host)
    after = set(_violated_ids(placement, move))
    return Step(
        vms=vms,
        sources=sources,
        target=move.host,
        groups=tuple(before),
        repairs=tuple(group for group in before if group not in after),
        after=ordered.after,
        purpose=purpose,
    )


def _purpose(placement: ProblemPlacement, move: Move) -> StepPurpose:
    problem = placement.problem
    for vm in move.vms:
        for goal in problem.goals_of.get(vm, ()):
            if not goal.constraint.groups and placement.violated(goal):
                return StepPurpose(goal.constraint.family)
    if all(problem.where[vm] == move.host for vm in move.vms):
        return StepPurpose.BACK
    return StepPurpose.ON if all(vm in placement.moved for vm in move.vms) else StepPurpose.ROOM


def _violated_ids(placement: ProblemPlacement, move: Move) -> Iterator[str]:
    """Groups of violated rules that any of the VMs belongs to."""
    for vm in move.vms:
        for goal in placement.problem.goals_of.get(vm, ()):
            if placement.violated(goal):
                yield from goal.constraint.groups
