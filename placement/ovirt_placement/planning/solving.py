"""From a problem to moves in order: chosen by a strategy, ordered, chosen again where no way leads there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ovirt_placement.planning.assignment.choice import Routing, Strategy, StrategyChoice
from ovirt_placement.planning.assignment.spread import spread
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.local_search.search import improved
from ovirt_placement.planning.lower_bound import least_migrations
from ovirt_placement.planning.ordering.dependencies import waits
from ovirt_placement.planning.ordering.order import OrderedMove
from ovirt_placement.planning.ordering.sequence import sequence
from ovirt_placement.planning.problem.gathering import meeting_first
from ovirt_placement.planning.problem.onwards import after
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.value import Value, value, value_of

_Moves = tuple[Move, ...]

#: Shares of the time that is left: for a choice, for a way to another end (or a shorter one to as good an
#: end), for an order of moves, and for going on rule by rule.
_CHOOSING_SHARE = 0.6
_ROUTING_SHARE = 0.35
_SHORTENING_SHARE = 0.8
_ORDERING_SHARE = 0.2
_STEPWISE_SHARE = 0.6
#: The same for other ends, where no straight way leads to the one chosen.
_OTHERS_SHARE = 0.2
#: The same for making an end better; the rest is for the way to it.
_IMPROVING_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Solution:
    """Moves in order, with what is known about their number."""

    moves: tuple[OrderedMove, ...]
    #: No legal sequence leaves less violated, and none as little with fewer migrations.
    proven: bool
    #: Migrations that every legal sequence has that leaves no more violated.
    at_least: int


def solve(problem: Problem, strategy: Strategy, deadline: Deadline) -> Solution:
    """The best moves that a strategy comes to before the deadline."""
    choice = _well_bounded(problem, strategy.choose(problem, deadline.within(_CHOOSING_SHARE)))
    bound = value_of(choice.bound)
    moves = _best_moves(problem, choice, deadline)
    worth = value(problem, moves)
    proven = worth <= bound
    if not proven and isinstance(strategy, Routing):
        share = _SHORTENING_SHARE if worth[:-1] <= bound[:-1] else _ROUTING_SHARE
        route = strategy.route(problem, choice, worth, deadline.within(share))
        if route is not None and (route.proven or value(problem, route.moves) < worth):
            moves, proven = route.moves, route.proven or value(problem, route.moves) <= bound
    if not proven and strategy.goes_on:
        moves = _improved(problem, moves, choice, strategy, deadline)
    if strategy.other is not None and not proven and value(problem, moves) > bound:
        simple = tuple(one.move for one in solve(problem, strategy.other, deadline).moves)
        moves = min(moves, simple, key=lambda one: value(problem, one))
    worth = value(problem, moves)
    proven = proven or worth <= bound
    known = None if problem.guessed else bound
    at_least = worth[-1] if proven else least_migrations(problem, worth, known)
    return Solution(tuple(map(OrderedMove, moves, waits(problem, moves))), proven, at_least)


def _well_bounded(problem: Problem, choice: StrategyChoice) -> StrategyChoice:
    bound = value_of(choice.bound)
    migrations = least_migrations(problem, bound, bound)
    return replace(choice, bound=choice.bound._replace(migrations=migrations))


def _improved(
    problem: Problem, moves: _Moves, choice: StrategyChoice, strategy: Strategy, deadline: Deadline
) -> _Moves:
    """By all that is known, in turn, as long as the bound is open, there is time, and any of it helps."""
    bound = value_of(choice.bound)
    while True:
        repaired = _further(problem, moves, bound, strategy, deadline)
        better = _to_better_ends(problem, repaired, choice, deadline)
        if better == moves or value(problem, better)[:-1] <= bound[:-1] or deadline.over:
            return better
        moves = better


def _to_better_ends(problem: Problem, moves: _Moves, choice: StrategyChoice, deadline: Deadline) -> _Moves:
    """The end that the moves lead to is made better, and a way is looked for to where that leads."""
    worth = value(problem, moves)
    while choice.further is not None and worth > value_of(choice.bound) and not deadline.over:
        where = choice.further(_end(problem, moves), deadline.within(_IMPROVING_SHARE))
        tried = _moves(problem, where, deadline)
        reached = value(problem, tried)
        if reached >= worth:
            break
        moves, worth = tried, reached
    return moves


def _end(problem: Problem, moves: _Moves) -> Mapping[str, str]:
    placement = ProblemPlacement(problem)
    for move in moves:
        placement.move(move.vms, move.host)
    return dict(placement.moved)


def _further(problem: Problem, moves: _Moves, bound: Value, strategy: Strategy, deadline: Deadline) -> _Moves:
    """Rule by rule, and by the strategy again from there, as long as that repairs something."""
    while value(problem, moves)[:-1] > bound[:-1]:
        repaired = improved(problem, moves, bound, deadline.within(_STEPWISE_SHARE))
        longer = _onwards(problem, repaired, strategy, deadline)
        if longer == moves or deadline.over:
            return longer
        moves = longer
    return moves


def _onwards(problem: Problem, moves: _Moves, strategy: Strategy, deadline: Deadline) -> _Moves:
    """Plan again from where the moves lead, as long as that repairs something."""
    worth = value(problem, moves)
    while not deadline.over:
        there = after(problem, moves)
        choice = strategy.choose(there, deadline.within(_CHOOSING_SHARE))
        longer = (*moves, *_best_moves(there, choice, deadline))
        reached = value(problem, longer)
        if reached[:-1] >= worth[:-1]:
            break
        moves, worth = longer, reached
    return moves


def _best_moves(problem: Problem, choice: StrategyChoice, deadline: Deadline) -> _Moves:
    """To the end that was chosen, if it is reached straight; else to the one with the shortest way there."""
    best = _moves(problem, choice.where, deadline)
    trying = deadline.within(_OTHERS_SHARE)
    for where in choice.others:
        if value(problem, best) <= value_of(choice.score) or trying.over:
            break
        moves = _moves(problem, spread(problem, where), trying)
        best = min(best, moves, key=lambda one: value(problem, one))
    return best


def _moves(problem: Problem, where: Mapping[str, str], deadline: Deadline) -> _Moves:
    """In order; a split group that ends where none of it was, meets first where some of it are."""
    met = meeting_first(problem, where)
    straight = _in_order(problem, where, deadline)
    if met == where:
        return straight
    first = _in_order(problem, met, deadline)
    there = after(problem, first)
    on_the_way = {vm: where.get(vm, problem.where[vm]) for vm in {*met, *where}}
    rest = {vm: host for vm, host in on_the_way.items() if there.where[vm] != host}
    return min(straight, (*first, *_in_order(there, rest, deadline)), key=lambda moves: value(problem, moves))


def _in_order(problem: Problem, where: Mapping[str, str], deadline: Deadline) -> _Moves:
    return sequence(problem, where, deadline.within(_ORDERING_SHARE)).moves
