"""Every strategy once, which of them there are, and how the best moves are found with one before a deadline.

The optimal one needs OR-Tools, which is an extra.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.util import find_spec
from itertools import count as numbers

from ovirt_placement.planning.plan import ALWAYS_CHECKED, NO_TIME, Deadline
from ovirt_placement.planning.problem.bound import bound, fixed, least_migrations, shortest
from ovirt_placement.planning.problem.ends import Strategy, StrategyChoice, Value, meeting_first, value
from ovirt_placement.planning.problem.placement import ProblemPlacement, after, placement_after
from ovirt_placement.planning.problem.problem import Goal, Move, Problem
from ovirt_placement.planning.sequence import direct_moves, sequence, shortened
from ovirt_placement.planning.solver.assignment import Assignment, EmptiestFirst
from ovirt_placement.planning.solver.greedy import Greedy
from ovirt_placement.rules.engine_affinity import buckets
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
        return StrategyChoice(dict(assignment.placement.moved), bound(problem))


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
        offenders = goal.constraint.offenders(assignment.placement)
        tiers = [[vm for vm in movable if vm in offenders]]
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


def strategy(name: StrategyName | None = None, seed: int | None = None) -> Strategy:
    """The strategy of that name, or the best that there is; one that draws lots takes the seed, or draws one.

    Raises `UserError` if the optimal one is asked for, and OR-Tools is not installed.
    """
    name = name or DEFAULT
    if name is StrategyName.OPTIMAL:
        if not OPTIMAL_IS_THERE:
            raise UserError("the strategy optimal needs OR-Tools: install ovirt-placement[planner]")
        # Only here, so that all else works without OR-Tools.
        from ovirt_placement.planning.solver.strategy import Optimal

        return Optimal()
    return Greedy() if name is StrategyName.GREEDY else Random(seed)


# -- The best moves that are found with a strategy.
_Moves = tuple[Move, ...]

#: Shares of the time that is left: for a choice, for the shortest way of all, and for an order of moves.
_CHOOSING_SHARE = 0.6
_SHORTENING_SHARE = 0.6
_ORDERING_SHARE = 0.2
#: The same for a simple strategy, and the seconds that it gets in any case: in less no other comes to more.
#: Then for what it does after that, where it has not repaired all that some end might.
_SIMPLE_SHARE = 0.3
_SIMPLE_SECONDS = 3.0
#: A problem with no more VMs times hosts is small, and that share of its time is kept for detours of a simple
#: strategy, but no less than it gets in any case; a share of that is for going on. Of a problem with that
#: many more, the other one has not even begun after a second.
_SMALL = 2_000
_DETOURS_SHARE = 0.1
_GOING_ON_IN_SMALL_SHARE = 0.5
_PLACES_A_SECOND = 1_000_000
_GOING_ON_SHARE = 0.2
#: How often it is begun again without any gain: for what is violated, and for fewer migrations alone; less
#: often in large clusters, where each takes longer. And VMs that move by lot before.
_PATIENCE = 20
_LITTLE_PATIENCE = 4
_PATIENT_UP_TO_VMS = 250
_SHAKES = 25


@dataclass(frozen=True, slots=True)
class Solution:
    """Moves in order, with what is known about their number."""

    moves: _Moves
    #: No legal sequence leaves less violated, and none as little with fewer migrations.
    proven: bool
    #: Migrations that every legal sequence has that leaves no more violated.
    at_least: int


@dataclass(frozen=True, slots=True)
class _Found:
    """What a strategy has come to, and the end that it chose."""

    choice: StrategyChoice
    moves: _Moves
    worth: Value
    proven: bool

    def ordered(self, problem: Problem, strategy: Strategy, deadline: Deadline) -> _Found:
        """With moves to the end that it chose, in as much time."""
        moves = _moves(problem, self.choice, strategy, deadline)
        worth = value(problem, moves)
        return replace(self, moves=moves, worth=worth, proven=worth <= self.choice.bound)


def solve(problem: Problem, strategy: Strategy, deadline: Deadline) -> Iterator[Solution]:
    """The best moves that are found before the deadline, each time that a strategy comes to its end.

    A simple strategy comes first, and gets the same time with another after it or none: no plan is worse
    than the one that it makes alone. Where the problem is small, and there is time for both, it makes detours
    only once the other had its turn.
    """
    simple = strategy.simple or strategy
    places = len(problem.memory_mb) * len(problem.hosts)
    left = max(_SIMPLE_SECONDS, deadline.seconds_left())
    small = strategy.simple is not None and places <= _SMALL and left > _SIMPLE_SECONDS
    # No less than what another takes to begin: where that is all, there is none.
    slow = places / _PLACES_A_SECOND
    first = deadline.within(min(1.0, max(_SIMPLE_SHARE, _SIMPLE_SECONDS / left, slow / left)))
    straight = _found(problem, simple, None, first, NO_TIME if small else first)
    # A part of the way to an end may repair nothing: then no migration is better.
    found = [replace(straight, moves=(), worth=value(problem, ()), proven=False), straight]
    better = None
    if small:
        until = deadline.within(1.0 - max(_DETOURS_SHARE, _SIMPLE_SECONDS / left), lent=0.0)
        better = _found(problem, strategy, None, until, until)
        if better.proven or deadline.over:
            yield _solution(problem, [*found, better])
            return
        found.append(straight.ordered(problem, simple, deadline))
    going_on = deadline.within(_GOING_ON_IN_SMALL_SHARE if small else _GOING_ON_SHARE)
    found.append(_gone_on(problem, found[-1], simple, going_on))
    yield _solution(problem, found)
    if strategy.simple is not None and deadline.seconds_left() > slow:
        better = better or _found(problem, strategy, found[-1], deadline, deadline)
        found.append(_gone_on(problem, better, strategy, deadline))
        yield _solution(problem, found)


def _solution(problem: Problem, found: Sequence[_Found]) -> Solution:
    """The best of what was found: of what is as good, the last."""
    bound = max(one.choice.bound for one in found)
    best = min(reversed(found), key=lambda one: one.worth)
    proven = best.worth <= bound or any(one.proven for one in found if one.worth == best.worth)
    proven = proven and not problem.guessed
    known = None if problem.guessed else bound
    at_least = best.worth[-1] if proven else least_migrations(problem, best.worth, known)
    return Solution(best.moves, proven, at_least)


def _found(
    problem: Problem, strategy: Strategy, simple: _Found | None, deadline: Deadline, ordering: Deadline
) -> _Found:
    """The end that a strategy chooses, given what a simple one has found, and a way there or further."""
    known = None if simple is None else simple.choice
    chosen = strategy.choose(problem, deadline.within(_CHOOSING_SHARE), known)
    if simple is not None and deadline.over:
        return replace(simple, choice=chosen)
    least = (*chosen.bound[:-1], least_migrations(problem, chosen.bound, chosen.bound))
    found = _Found(replace(chosen, bound=least), (), (), proven=False)
    if simple is not None and chosen is known:
        found = replace(found, moves=simple.moves, worth=simple.worth, proven=simple.proven)
    else:
        found = found.ordered(problem, strategy, ordering)
    if not found.proven and strategy.simple is not None and not deadline.over:
        fewest = shortest(problem, least[:-1], deadline.within(_SHORTENING_SHARE))
        if fewest is not None:
            found = replace(found, moves=fewest, worth=value(problem, fewest), proven=True)
    return found


def _gone_on(problem: Problem, found: _Found, strategy: Strategy, deadline: Deadline) -> _Found:
    """Planned again from where the moves lead; then, as long as patience lasts, from elsewhere.

    Elsewhere is where moves by lot lead from there, and from the start: in a nearly full cluster other ends
    are within reach from there.
    """
    bound, idle = found.choice.bound, 0
    large = max(1.0, len(problem.where) / _PATIENT_UP_TO_VMS)
    for number in numbers():
        left = placement_after(problem, found.moves).violated_goals()
        hopeful = any((goal.wanted or goal.satisfied) and not fixed(problem, goal) for goal in left)
        patience = _PATIENCE if hopeful else _LITTLE_PATIENCE
        if found.proven or not strategy.goes_on or idle * large >= patience or deadline.over:
            break
        begun = found.moves
        if idle:
            dice = random.Random(number)  # noqa: S311 - dice, not secrets
            begun = _shaken(problem, begun if number % 2 else (), dice, deadline)
            strategy = strategy.simple or strategy
        there = after(problem, begun)
        choice = strategy.choose(there, deadline.within(_CHOOSING_SHARE))
        moves = (*begun, *_moves(there, choice, strategy, deadline))
        moves = shortened(problem, moves, deadline)
        idle += 1
        if (worth := value(problem, moves)) < found.worth:
            found, idle = replace(found, moves=moves, worth=worth, proven=worth <= bound), 0
    return found


def _shaken(problem: Problem, moves: _Moves, dice: random.Random, deadline: Deadline) -> _Moves:
    """Some VMs go elsewhere, for no reason but that it might help."""
    placement, vms = placement_after(problem, moves), sorted(problem.memory_mb)
    shaken = list(moves)
    for vm in dice.sample(vms, min(len(vms), _SHAKES)) if problem.hosts else ():
        move = Move(placement.closure(vm), dice.choice(problem.hosts))
        if not deadline.over and placement.allows(move):
            placement.move(move.vms, move.host)
            shaken.append(move)
    return tuple(shaken)


def _moves(problem: Problem, choice: StrategyChoice, strategy: Strategy, deadline: Deadline) -> _Moves:
    """In order, to an end; where some VMs do not get there straight, the best of what else there is.

    A split group that ends where none of it was, meets first where some of it are.
    """
    where, placement = choice.where, ProblemPlacement(problem)
    straight = tuple(direct_moves(placement, where))
    if placement.moved == where:
        return straight
    directly = (strategy.simple or strategy).repair_directly(problem, deadline)
    ends = (end for end in choice.earlier if len(end) <= ALWAYS_CHECKED or not deadline.over)
    candidates = [tuple(direct_moves(ProblemPlacement(problem), end)) for end in ends]
    candidates += [_in_order(problem, where, deadline), directly]
    met = meeting_first(problem, where)
    if met != where:
        first = _in_order(problem, met, deadline)
        there = after(problem, first)
        on_the_way = {vm: where.get(vm, problem.where[vm]) for vm in {*met, *where}}
        rest = {vm: host for vm, host in on_the_way.items() if there.where[vm] != host}
        candidates.append((*first, *_in_order(there, rest, deadline)))
    return min(candidates, key=lambda moves: value(problem, moves))


def _in_order(problem: Problem, where: Mapping[str, str], deadline: Deadline) -> _Moves:
    return sequence(problem, where, deadline.within(_ORDERING_SHARE))
