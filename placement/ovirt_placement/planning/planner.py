"""Plans the repair of one cluster: pure, and certified by the rules step by step."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.planning import strategies
from ovirt_placement.planning.ha_repair import Asked, restored
from ovirt_placement.planning.plan import NEVER, NO_TIME, Deadline, LostReservation, Plan, RefusedStep
from ovirt_placement.planning.problem.bound import least_migrations
from ovirt_placement.planning.problem.build_problem import DEFAULT_OPTIONS, NOTHING_REFUSED, PlanOptions, pose
from ovirt_placement.planning.problem.ends import (
    Strategy,
    StrategyChoice,
    Value,
    crowded,
    meeting_first,
    value,
)
from ovirt_placement.planning.problem.placement import after, placement_after
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.reservation import Harm, avoidable_harm, harm, safe_part
from ovirt_placement.planning.sequence import sequence
from ovirt_placement.planning.solver.local_search import improved
from ovirt_placement.planning.solver.spread import spread
from ovirt_placement.planning.steps import Certified, certify, moves_of, plan_seconds, refusal
from ovirt_placement.planning.unrepaired import End, LeftOut, remains
from ovirt_placement.rules.doubts import held

_Moves = tuple[Move, ...]

#: Shares of the time that is left: for a choice, for the shortest way of all, for an order of moves, and for
#: going on rule by rule.
_CHOOSING_SHARE = 0.6
_SHORTENING_SHARE = 0.6
_ORDERING_SHARE = 0.2
_STEPWISE_SHARE = 0.6
#: The same for other ends, where no straight way leads to the one chosen.
_OTHERS_SHARE = 0.2
#: The same for making an end better; the rest is for the way to it.
_IMPROVING_SHARE = 0.8
#: The same for a simple strategy, and the seconds that it gets in any case: in less no other comes to more.
#: Then for what it does after that, where it has not repaired all that some end might.
_SIMPLE_SHARE = 0.3
_SIMPLE_SECONDS = 3.0
#: A problem with no more VMs times hosts is small, and that share of its time is kept for detours of a simple
#: strategy; of one with that many more, the other one has not even begun after a second.
_SMALL = 2_000
_DETOURS_SHARE = 0.1
_PLACES_A_SECOND = 1_000_000
_GOING_ON_SHARE = 0.2


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

    def ordered(self, problem: Problem, deadline: Deadline) -> _Found:
        """With moves to the end that it chose, in as much time."""
        moves = _best_moves(problem, self.choice, deadline)
        worth = value(problem, moves)
        return replace(self, moves=moves, worth=worth, proven=worth <= self.choice.bound)


def solve(problem: Problem, strategy: Strategy, deadline: Deadline) -> Iterator[Solution]:
    """The best moves that are found before the deadline, each time that a strategy comes to its end.

    A simple strategy comes first, and gets the same time with another after it or none: no plan is worse
    than the one that it makes alone. Where the problem is small, it makes detours only once the other had
    its turn.
    """
    simple = strategy.simple or strategy
    places = len(problem.memory_mb) * len(problem.hosts)
    small = strategy.simple is not None and places <= _SMALL
    left = max(_SIMPLE_SECONDS, deadline.seconds_left())
    first = deadline.within(max(_SIMPLE_SHARE, _SIMPLE_SECONDS / left))
    straight = _found(problem, simple, None, first, NO_TIME if small else first)
    # A part of the way to an end may repair nothing: then no migration is better.
    found = [replace(straight, moves=(), worth=value(problem, ()), proven=False), straight]
    better = None
    if small:
        until = _without(deadline, deadline.within(_DETOURS_SHARE))
        better = _found(problem, strategy, None, until, until)
        if better.proven or deadline.over:
            yield _solution(problem, [*found, better])
            return
        found.append(straight.ordered(problem, deadline))
    found.append(_gone_on(problem, found[-1], simple, deadline.within(_GOING_ON_SHARE)))
    yield _solution(problem, found)
    if strategy.simple is not None and deadline.seconds_left() > places / _PLACES_A_SECOND:
        better = better or _found(problem, strategy, found[-1], deadline, deadline)
        found.append(_gone_on(problem, better, strategy, deadline))
        yield _solution(problem, found)


def _without(deadline: Deadline, other: Deadline) -> Deadline:
    """One that leaves as much time as another has."""
    kept = other.seconds_left()
    return deadline.later(-kept) if kept < math.inf else deadline


def _solution(problem: Problem, found: Sequence[_Found]) -> Solution:
    """The best of what was found: of what is as good, the last."""
    bound = max(one.choice.bound for one in found)
    best = min(reversed(found), key=lambda one: one.worth)
    proven = best.worth <= bound or any(one.proven for one in found if one.worth == best.worth)
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
        found = found.ordered(problem, ordering)
    if not found.proven and strategy.shortest is not None and not deadline.over:
        shortest = strategy.shortest(problem, least[:-1], deadline.within(_SHORTENING_SHARE))
        if shortest is not None:
            found = replace(found, moves=shortest, worth=value(problem, shortest), proven=True)
    return found


def _gone_on(problem: Problem, found: _Found, strategy: Strategy, deadline: Deadline) -> _Found:
    """By all that is known, in turn, as long as the bound is open, there is time, and any of it helps."""
    moves, bound = found.moves, found.choice.bound
    while strategy.goes_on and not found.proven and not deadline.over:
        repaired = _further(problem, found.moves, bound, strategy, deadline)
        moves = _to_better_ends(problem, repaired, found.choice, deadline)
        worth = value(problem, moves)
        same = moves == found.moves
        found = replace(found, moves=moves, worth=worth, proven=worth <= bound)
        if same or worth[:-1] <= bound[:-1]:
            break
    return found


def _to_better_ends(problem: Problem, moves: _Moves, choice: StrategyChoice, deadline: Deadline) -> _Moves:
    """The end that the moves lead to is made better, and a way is looked for to where that leads."""
    worth = value(problem, moves)
    while choice.further is not None and worth > choice.bound and not deadline.over:
        where = choice.further(placement_after(problem, moves).moved, deadline.within(_IMPROVING_SHARE))
        tried = _moves(problem, where, deadline)
        reached = value(problem, tried)
        if reached >= worth:
            break
        moves, worth = tried, reached
    return moves


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
        if value(problem, best) <= choice.score.value or trying.over:
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


#: Which VMs are to be left alone for now: with the reason of each, where it is known.
Frozen = Mapping[str, str] | Collection[str]

#: So often a plan is made again without a step that some rule refuses; after that, it ends before the step.
_MOST_REFUSALS = 20
#: And so often without the targets of one that would harm highly available VMs.
_MOST_HARMFUL = 3
#: The share of the time that is left for a plan; the rest is for what may refuse it, and for reasons: these
#: seconds, where there is little time, but not more than leaves that share for a plan.
_SOLVING_SHARE = 0.9
_CHECKING_SECONDS = 0.5
_LEAST_SOLVING_SHARE = 0.7
#: What a check may take beyond the time that there is, rather than that a plan is lost: a share of it, and
#: seconds.
_LATE_SHARE = 0.05
_LATE_SECONDS = 0.15
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
        return value(self.problem, moves_of(self.certified.steps))


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
    strategy = strategy or strategies.strategy()
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
        """The best of what is found, as far as the rules let it pass; a later one must be as good."""
        left = max(_CHECKING_SECONDS, deadline.seconds_left())
        share = max(_LEAST_SOLVING_SHARE, min(_SOLVING_SHARE, 1.0 - _CHECKING_SECONDS / left))
        late = deadline.later(_LATE_SHARE * left + _LATE_SECONDS)
        attempts: list[_Attempt] = []
        for solution in solve(problem, self.strategy, deadline.within(share, lent=0.0)):
            if attempts and solution.moves == attempts[-1].solution.moves:
                attempts[-1] = replace(attempts[-1], solution=solution)
            else:
                certified = certify(self.snapshot, problem, solution.moves, late)
                attempts.append(_Attempt(self.snapshot, problem, solution, certified))
        return min(reversed(attempts), key=lambda one: one.worth)

    def plan(
        self, attempt: _Attempt, dropped: tuple[RefusedStep, ...], left_out: LeftOut, deadline: Deadline
    ) -> Plan:
        """What is said of the last attempt; of the VMs in `left_out` moves were left out for HA's sake."""
        problem, solution, certified = attempt.problem, attempt.solution, attempt.certified
        steps, end, lost = certified.steps, certified.end, attempt.harm
        whole = certified.whole
        if attempt.avoidable:
            (steps, end), whole = safe_part(self.snapshot, steps, self.cluster), False
            lost = harm(self.snapshot, end, self.cluster)
            left = {vm for step in certified.steps[len(steps) :] for vm in step.vms}
            left_out = LeftOut(left_out.vms | left, attempt.avoidable)
        # What was dropped on the way may only just have been refused: with it left out, nothing is proven.
        dropped_any = problem.refused != self.refused
        proven = solution.proven and whole and not (problem.guessed or dropped_any)
        moved = steps or dropped_any
        posed = pose(end, self.cluster, self.frozen, self.refused, self.options) if moved else problem
        ended = End(end, posed, self.frozen, proven, left_out, problem)
        at_least = solution.at_least
        if not whole or dropped_any:  # it was cut short, or made without what was only just refused
            at_least = least_migrations(problem, value(problem, moves_of(steps)), None)
        return Plan(
            cluster=self.cluster,
            strategy=self.strategy.name,
            seed=self.strategy.seed,
            steps=steps,
            remaining=remains(ended, deadline, explained=self.explained),
            refused=dropped,
            crowded=crowded(placement_after(problem, moves_of(steps))),
            costs=(LostReservation(lost.hosts, (), lost.vms),) if lost else (),
            proven=proven,
            at_least=at_least,
            seconds=plan_seconds(steps),
        )
