"""Plans the repair of one cluster: pure, and certified by the rules step by step."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.assignment import catalogue
from ovirt_placement.planning.assignment.choice import Strategy
from ovirt_placement.planning.deadline import NEVER, Deadline
from ovirt_placement.planning.ha_repair.restore import Asked, restored
from ovirt_placement.planning.legality import legal
from ovirt_placement.planning.lower_bound import least_migrations
from ovirt_placement.planning.ordering.schedule import ScheduleLimits, schedule
from ovirt_placement.planning.plan import LostReservation, Plan, RefusedStep, Step
from ovirt_placement.planning.problem.build_problem import DEFAULT_OPTIONS, NOTHING_REFUSED, PlanOptions, pose
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.problem.score import crowded
from ovirt_placement.planning.reservation import Harm, avoidable_harm, harm, safe_part
from ovirt_placement.planning.solving import Solution, solve
from ovirt_placement.planning.unrepaired import End, LeftOut, remains
from ovirt_placement.planning.value import Value, value
from ovirt_placement.planning.verification import Certified, apply, certify, refusal
from ovirt_placement.rules.doubts import held

#: Which VMs are to be left alone for now: with the reason of each, where it is known.
Frozen = Mapping[str, str] | Collection[str]

#: So often a plan is made again without a step that some rule refuses; after that, it ends before the step.
_MOST_REFUSALS = 20
#: And so often without the targets of one that would harm highly available VMs.
_MOST_HARMFUL = 3
#: The share of the time that is left for a plan; the rest is for what may refuse it, and for reasons.
_SOLVING_SHARE = 0.9
#: Where an HA reservation is to be restored, too, the share of the time that repairing rules may take.
_REPAIRING_SHARE = 0.6


@dataclass(frozen=True)
class _Attempt:
    snapshot: Snapshot
    problem: Problem
    solution: Solution
    certified: Certified

    @cached_property
    def harm(self) -> Harm | None:
        """What it would make worse for highly available VMs."""
        return harm(self.snapshot, self.certified.end, self.problem.cluster)

    @cached_property
    def avoidable(self) -> Harm | None:
        """The same but for what the rules that it repairs cost by themselves."""
        steps, end = self.certified.steps, self.certified.end
        return self.harm and avoidable_harm(self.snapshot, steps, end, self.problem.cluster)

    @cached_property
    def worth(self) -> Value:
        return value(self.problem, [Move(step.vms, step.target) for step in self.certified.steps])


def make_plan(
    snapshot: Snapshot,
    cluster: str,
    frozen: Frozen = (),
    *,
    refused: Collection[tuple[str, str]] = NOTHING_REFUSED,
    options: PlanOptions = DEFAULT_OPTIONS,
    strategy: Strategy | None = None,
    deadline: Deadline = NEVER,
    explained: bool = True,
) -> Plan:
    """The migrations that leave the least violated in a cluster, and of such the fewest that were found.

    VMs in `frozen` stay where they are; `refused` are VMs with hosts that the engine would not have. Every
    step is checked by all rules that count in the cluster, and by the engine's own filters; one that they
    refuse is dropped, and the plan made again without it. While something is not known yet, nothing is moved.
    Without a deadline the work is bounded, not the time. Why rules are not repaired takes time to find out;
    it is left out if not `explained`.
    """
    strategy = strategy or catalogue.strategy()
    frozen = held(snapshot, cluster) or frozen
    asking = _Asking(snapshot, cluster, frozen, frozenset(refused), options, strategy, explained)
    if not options.reserve:
        return _repairing(asking, deadline)
    plan = _repairing(asking, deadline.within(_REPAIRING_SHARE))
    return restored(plan, Asked(snapshot, frozen, asking.refused, options), deadline)


def _repairing(asking: _Asking, deadline: Deadline) -> Plan:
    """The plan that repairs rules."""
    snapshot, cluster, problem = asking.snapshot, asking.cluster, asking.pose()
    if all(goal.satisfied or not goal.wanted for goal in problem.goals):
        end = End(snapshot, problem, asking.frozen, proven=True)
        left = remains(end, deadline, explained=asking.explained)
        return Plan(cluster=cluster, strategy=asking.strategy.name, seed=asking.strategy.seed, remaining=left)
    dropped: dict[tuple[str, str], RefusedStep] = {}
    harmful: set[tuple[str, str]] = set()
    found: Harm | None = None
    costly: _Attempt | None = None
    attempt = asking.attempt(problem, deadline)
    for _ in range(_MOST_REFUSALS + _MOST_HARMFUL):
        step = attempt.certified.refused
        if deadline.over:
            break
        if step is not None and len(dropped) < _MOST_REFUSALS:
            dropped |= refusal(attempt.certified.end, cluster, step)
        elif len(harmful) < _MOST_HARMFUL and attempt.harm:
            found = attempt.harm
            costly = costly or (None if attempt.avoidable else attempt)
            harmful |= {(vm, one.target) for one in attempt.certified.steps for vm in one.vms}
        else:
            break
        attempt = asking.attempt(asking.pose(dropped.keys() | harmful), deadline)
    if costly is not None and (attempt.harm or attempt.worth[:-1] > costly.worth[:-1]):
        attempt = costly
    left_out = LeftOut(frozenset(vm for vm, _ in harmful), found)
    return asking.plan(attempt, tuple(dict.fromkeys(dropped.values())), left_out, deadline)


class _Asking(NamedTuple):
    """What a plan is asked for."""

    snapshot: Snapshot
    cluster: str
    frozen: Frozen
    refused: frozenset[tuple[str, str]]
    options: PlanOptions
    strategy: Strategy
    explained: bool

    def pose(self, refused: Collection[tuple[str, str]] = NOTHING_REFUSED) -> Problem:
        return pose(self.snapshot, self.cluster, self.frozen, {*self.refused, *refused}, self.options)

    def attempt(self, problem: Problem, deadline: Deadline) -> _Attempt:
        solution = solve(problem, self.strategy, deadline.within(_SOLVING_SHARE, lent=0.0))
        return _Attempt(self.snapshot, problem, solution, certify(self.snapshot, problem, solution.moves))

    def plan(
        self, attempt: _Attempt, dropped: tuple[RefusedStep, ...], left_out: LeftOut, deadline: Deadline
    ) -> Plan:
        """What is said of the last attempt; of the VMs in `left_out` moves were left out for HA's sake."""
        problem, solution, certified = attempt.problem, attempt.solution, attempt.certified
        steps, end, lost = certified.steps, certified.end, attempt.harm
        whole = certified.refused is None
        if attempt.avoidable:
            (steps, end), whole = safe_part(self.snapshot, steps, self.cluster), False
            lost = harm(self.snapshot, end, self.cluster)
            left = {vm for step in certified.steps[len(steps) :] for vm in step.vms}
            left_out = LeftOut(left_out.vms | left, attempt.avoidable)
        # What was dropped on the way may only just have been refused: with it left out, nothing is proven.
        dropped_any = problem.refused != self.refused
        proven = solution.proven and whole and not (problem.guessed or dropped_any)
        posed = pose(end, self.cluster, self.frozen, self.refused, self.options)
        ended = End(end, posed, self.frozen, proven, left_out)
        return Plan(
            cluster=self.cluster,
            strategy=self.strategy.name,
            seed=self.strategy.seed,
            steps=steps,
            remaining=remains(ended, deadline, explained=self.explained),
            refused=dropped,
            crowded=_crowded(problem, steps),
            costs=(LostReservation(lost.hosts, (), lost.vms),) if lost else (),
            proven=proven,
            at_least=solution.at_least if whole and not dropped_any else _at_least(problem, steps),
            seconds=schedule(steps, ScheduleLimits()).makespan,
        )


def holds(
    snapshot: Snapshot, plan: Plan, frozen: Frozen = (), options: PlanOptions = DEFAULT_OPTIONS
) -> bool:
    """Whether the steps of a plan are still legal, one after the other, and still lead to what it says."""
    for step in plan.steps:
        if any(vm in frozen for vm in step.vms) or not legal(snapshot, step):
            return False
        snapshot = apply(snapshot, step)
    problem = pose(snapshot, plan.cluster, frozen, options=options)
    left = {
        (goal.constraint.family, goal.constraint.groups, goal.hard)
        for goal in problem.goals
        if not goal.satisfied
    }
    return left == {(one.family, one.groups, one.hard) for one in plan.remaining}


def _at_least(problem: Problem, steps: Sequence[Step]) -> int:
    """Of a plan that was cut short, or made without what was only just refused."""
    moves = [Move(step.vms, step.target) for step in steps]
    return least_migrations(problem, value(problem, moves), None)


def _crowded(problem: Problem, steps: Sequence[Step]) -> tuple[str, ...]:
    placement = ProblemPlacement(problem)
    for step in steps:
        placement.move(step.vms, step.target)
    return crowded(placement)
