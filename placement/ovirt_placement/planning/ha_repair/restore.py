"""Goes on from a plan: migrations that restore the HA reservation of its cluster, certified as all are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.ha_repair.failing import Failing, failing
from ovirt_placement.planning.ha_repair.search import Found, Search
from ovirt_placement.planning.ordering.dependencies import waits
from ovirt_placement.planning.ordering.order import OrderedMove
from ovirt_placement.planning.ordering.schedule import ScheduleLimits, schedule
from ovirt_placement.planning.plan import LostReservation, Plan, Reservation
from ovirt_placement.planning.problem.build_problem import PlanOptions, pose
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.problem.score import crowded
from ovirt_placement.planning.verification import Certified, apply, certify, refusal

#: So often a plan is made again without a step that some rule refuses.
_MOST_REFUSALS: Final = 5


class Asked(NamedTuple):
    """What the plan was asked for."""

    snapshot: Snapshot
    frozen: Mapping[str, str] | Collection[str]
    refused: frozenset[tuple[str, str]]
    options: PlanOptions


def restored(plan: Plan, asked: Asked, deadline: Deadline) -> Plan:
    """The plan with migrations after its own that let every VM survive, or more of them than before.

    What is lost at its end is judged exactly, by the same check as the watch makes. A satisfied rule
    remains satisfied, and none is violated more; headroom is taken only where there is no other way.
    """
    snapshot, cluster = asked.snapshot, plan.cluster
    if not snapshot.cluster_by_id[cluster].ha_reservation:
        return plan
    end = snapshot
    for step in plan.steps:
        end = apply(end, step)
    start = failing(end, cluster, asked.options.domains)
    if not start.unplaced:
        return replace(plan, reservation=_reservation(start, proven=not start.unknown))
    refused = asked.refused
    for _ in range(_MOST_REFUSALS):
        problem = pose(end, cluster, asked.frozen, refused, asked.options)
        found = _search(end, problem, asked.options, start, deadline)
        certified = _certify(plan, found.moves, asked)
        if certified.refused is None:
            return _extended(plan, found, certified, asked, refused == asked.refused)
        refused = refused | refusal(certified.end, cluster, certified.refused).keys()
    return replace(plan, reservation=_reservation(start, proven=False))


def _search(
    end: Snapshot, problem: Problem, options: PlanOptions, start: Failing, deadline: Deadline
) -> Found:
    """Headroom is kept, if that does; else it is given up."""
    if not (options.memory_headroom or options.cpu_headroom):
        return Search(end, problem, options.domains, roomy=False).run(start, deadline)
    roomy = Search(end, problem, options.domains, roomy=True).run(start, deadline.within(0.5))
    if not roomy.end.unplaced:
        return roomy
    found = Search(end, problem, options.domains, roomy=False).run(start, deadline)
    return found if found.end.unplaced < roomy.end.unplaced else roomy


def _certify(plan: Plan, moves: Sequence[Move], asked: Asked) -> Certified:
    """All steps in one order, from the state of today: what can be done at once is."""
    problem = pose(asked.snapshot, plan.cluster, asked.frozen, options=asked.options)
    every = [*(Move(step.vms, step.target) for step in plan.steps), *moves]
    ordered = [OrderedMove(*pair) for pair in zip(every, waits(problem, every), strict=True)]
    return certify(asked.snapshot, problem, ordered)


def _extended(plan: Plan, found: Found, certified: Certified, asked: Asked, all_tried: bool) -> Plan:
    own = len(plan.steps)
    steps = (*certified.steps[:own], *(replace(step, reserves=True) for step in certified.steps[own:]))
    proven = found.proven and all_tried
    reservation = _reservation(found.end, proven=proven)
    if not found.moves:
        return replace(plan, reservation=reservation)
    end = pose(certified.end, plan.cluster, asked.frozen, options=asked.options)
    violated = {
        (goal.constraint.family, goal.constraint.groups, goal.hard)
        for goal in end.goals
        if not goal.satisfied
    }
    placement = ProblemPlacement(pose(asked.snapshot, plan.cluster, asked.frozen, options=asked.options))
    for step in steps:
        placement.move(step.vms, step.target)
    return replace(
        plan,
        steps=steps,
        remaining=tuple(one for one in plan.remaining if (one.family, one.groups, one.hard) in violated),
        crowded=crowded(placement),
        proven=plan.proven and proven and not plan.steps,
        at_least=sum(len(move.vms) for move in found.moves) if proven and not plan.steps else plan.at_least,
        seconds=schedule(steps, ScheduleLimits()).makespan,
        reservation=reservation,
    )


def _reservation(end: Failing, *, proven: bool) -> Reservation:
    lost = tuple(
        LostReservation(hosts=one.hosts, domains=one.domains, vms=one.unplaced) for one in end.losses
    )
    return Reservation(lost=lost, known=not end.unknown, proven=proven)
