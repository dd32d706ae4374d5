"""Every strategy once, and which of them there are: the optimal one needs OR-Tools, which is an extra."""

import random
import secrets
from collections.abc import Iterator
from enum import StrEnum
from importlib.util import find_spec

from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.bound import bound
from ovirt_placement.planning.problem.ends import Strategy, StrategyChoice, score
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.solver.assignment import Assignment, EmptiestFirst
from ovirt_placement.planning.solver.greedy import Greedy
from ovirt_placement.rules.scheduling import buckets
from ovirt_service.errors import UserError

#: Seeds that are drawn are below this: easy to type.
_SEEDS = 1_000_000


class Random(Strategy):
    """The same seed has the same choice for the same problem; without one it is drawn, each time another."""

    name = "random"
    goes_on = False

    def __init__(self, seed: int | None = None) -> None:
        self.seed = secrets.randbelow(_SEEDS) if seed is None else seed

    def choose(
        self, problem: Problem, deadline: Deadline, known: StrategyChoice | None = None
    ) -> StrategyChoice:
        """An end with VMs of one rule elsewhere, each by a legal migration; the start, if there is none."""
        dice = random.Random(self.seed)  # noqa: S311 - dice, not secrets
        assignment = Assignment(problem)
        goals = [goal for goal in assignment.placement.violated_goals() if goal.wanted]
        dice.shuffle(goals)
        for goal in goals:
            if deadline.over or _tried(assignment, goal, dice):
                break
        return StrategyChoice(dict(assignment.placement.moved), score(assignment.placement), bound(problem))


def _tried(assignment: Assignment, goal: Goal, dice: random.Random) -> bool:
    """Move VMs of a goal until it is satisfied, each once; whether that was worth it, else nothing moves."""
    cost, order = assignment.cost, EmptiestFirst(assignment)
    for vm in _in_turn(assignment, goal, dice):
        if not assignment.placement.violated(goal):
            break
        host = next((host for host in order if _helps(assignment, goal, vm, host)), None)
        if host is not None:
            source = assignment.where(vm)
            assignment.move((vm,), host)
            order.update((source, host))
    if assignment.cost < cost:
        return True
    assignment.back_to(0)
    return False


def _in_turn(assignment: Assignment, goal: Goal, dice: random.Random) -> Iterator[str]:
    """The VMs that violate a rule: by the engine's buckets, by lot inside each."""
    movable = [vm for vm in goal.vms if assignment.problem.targets[vm]]
    if goal.gathers or goal.limit is not None:
        tiers = [list(tier) for tier in buckets(goal.constraint, assignment.placement, movable)]
    else:
        wrong = goal.constraint.offenders(assignment.placement)
        tiers = [[vm for vm in movable if vm in wrong]]
    for tier in tiers:
        dice.shuffle(tier)
        yield from tier


def _helps(assignment: Assignment, goal: Goal, vm: str, host: str) -> bool:
    """Whether a VM may migrate to a host and does what the goal asks of it there."""
    if not assignment.placement.legal(vm, host):
        return False
    if goal.gathers:
        crowd = assignment.placement.crowd(goal)
        return crowd.get(host, 0) >= crowd[assignment.where(vm)]
    return vm in goal.constraint.offenders(assignment.placement) and assignment.placement.admits(
        goal, vm, host
    )


class StrategyName(StrEnum):
    """As the configuration and `--strategy` name them."""

    OPTIMAL = "optimal"
    GREEDY = "greedy"
    RANDOM = "random"


#: Whether the extra `planner` is installed.
OPTIMAL_IS_THERE = find_spec("ortools") is not None

#: The default.
DEFAULT = StrategyName.OPTIMAL if OPTIMAL_IS_THERE else StrategyName.GREEDY


class NoOptimalStrategy(UserError):
    """The optimal strategy was asked for, and OR-Tools is not installed."""

    def __init__(self) -> None:
        super().__init__("the strategy optimal needs OR-Tools: install ovirt-placement[planner]")


def strategy(name: StrategyName | None = None, seed: int | None = None) -> Strategy:
    """The strategy of that name, or the best that there is; one that draws lots takes the seed, or draws one.

    Raises `NoOptimalStrategy`.
    """
    name = name or DEFAULT
    if name is StrategyName.OPTIMAL:
        if not OPTIMAL_IS_THERE:
            raise NoOptimalStrategy
        # Only here, so that all else works without OR-Tools.
        from ovirt_placement.planning.solver.strategy import Optimal

        return Optimal()
    return Greedy() if name is StrategyName.GREEDY else Random(seed)
