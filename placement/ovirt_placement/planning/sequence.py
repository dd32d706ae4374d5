"""Puts moves into a legal sequence: straight ones first, then detours for what blocks itself."""

import random
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ovirt_placement.planning.detours import DetourSearch, around, direct_moves, whole
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.ends import score
from ovirt_placement.planning.problem.placement import ProblemPlacement, are_legal, placement_after
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.rules.elements.assignment import Budget


def tied(problem: Problem, where: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The VMs that move, parted so that straight moves of one part never bar or free those of another."""
    moving = sorted(vm for vm, host in where.items() if problem.where[vm] != host)
    part_of = {vm: [vm] for vm in moving}
    for knot in _knots(problem, where, moving):
        first, *others = knot
        for other in others:
            one, two = part_of[first], part_of[other]
            if one is not two:
                small, large = sorted((one, two), key=len)
                large.extend(small)
                part_of.update(dict.fromkeys(small, large))
    distinct = {id(part): part for part in part_of.values()}
    return [tuple(sorted(part)) for part in distinct.values()]


def _knots(problem: Problem, where: Mapping[str, str], moving: Iterable[str]) -> Iterator[list[str]]:
    """VMs that a tight host, or a hard rule, ties together."""
    arrivals_mb: defaultdict[str, int] = defaultdict(int)
    for vm in moving:
        arrivals_mb[where[vm]] += problem.memory_mb[vm]
    knots: defaultdict[Hashable, list[str]] = defaultdict(list)
    for vm in moving:
        ends = (problem.where[vm], where[vm])
        for host in ends:
            if arrivals_mb[host] > problem.free_mb.get(host, 0):
                knots[host].append(vm)
        for goal in problem.goals_of.get(vm, ()):
            if goal.binding and goal.limit is not None:
                for place in {*map(goal.limit.place, ends)}:
                    knots[goal.number, place].append(vm)
            elif goal.binding and goal.allowed is None and goal.concerns(*ends):
                knots[goal.number].append(vm)
    yield from (knot for knot in knots.values() if len(knot) > 1)


#: Standings that searches look at, a millisecond each: of a small cluster as a whole; else in all.
_WHOLE = 20_000
_PARTS = 4_000
#: And in a search around a few VMs: at first, for those of a knot, and for all that are stuck.
_A_LITTLE, _MORE, _MOST = 100, 600, 3_000
#: Migrations up to which those are looked for that a plan with stuck VMs can do without.
_MOST_TO_TRIM = 100
#: How often all is begun again where something is stuck.
_ATTEMPTS = 8
#: VMs that are searched together.
_MOST_TOGETHER = 8
#: VMs of one knot that are searched together where all are too many.
_OF_A_KNOT = 5


@dataclass(frozen=True, slots=True)
class Sequence:
    """Legal moves, one by one."""

    moves: tuple[Move, ...]
    stuck: frozenset[str]
    #: No legal way with fewer migrations leads all VMs to their hosts.
    proven: bool

    @property
    def migrations(self) -> int:
        return sum(len(move.vms) for move in self.moves)


def sequence(problem: Problem, where: Mapping[str, str], deadline: Deadline) -> Sequence:
    """A way with few migrations; where every VM gets straight to its host there is no shorter one."""
    best = _straight(problem, where)
    if not best.stuck:
        return best
    return _without_the_useless(problem, _least_stuck(problem, where, deadline), deadline)


def _least_stuck(problem: Problem, where: Mapping[str, str], deadline: Deadline) -> Sequence:
    """By detours, where straight moves do not lead all VMs to their hosts."""
    best = Sequence((), frozenset(where), proven=False)
    scope = whole(ProblemPlacement(problem))
    if scope is not None:
        search = DetourSearch(ProblemPlacement(problem), where, scope)
        found = search.run(deadline.within(0.5), Budget(_WHOLE))
        stuck = _stuck(placement_after(problem, found.moves), where)
        best = Sequence(found.moves, stuck, found.exhausted and not _guessed(problem, where))
        if found.exhausted:
            return best
    effort = _Effort(deadline, Budget(_PARTS))
    best = _better(problem, _with_detours(problem, where, effort), best)
    for attempt in range(_ATTEMPTS):
        if not best.stuck or deadline.over:
            break
        # As another sequence of straight moves lets it be: it may fill other hosts too early.
        chance = random.Random(attempt)  # noqa: S311 - plans are to be the same each time
        placement = ProblemPlacement(problem)
        moves = direct_moves(placement, where, chance)
        moves.extend(_disentangled(placement, where, effort))
        other = Sequence(tuple(moves), _stuck(placement, where), proven=False)
        best = _better(problem, best, other)
    return best


@dataclass(frozen=True, slots=True)
class _Effort:
    """What may be spent on all searches together."""

    deadline: Deadline
    budget: Budget

    @property
    def over(self) -> bool:
        return self.deadline.over or self.budget.left <= 0


def _straight(problem: Problem, where: Mapping[str, str]) -> Sequence:
    placement = ProblemPlacement(problem)
    moves = direct_moves(placement, where)
    stuck = _stuck(placement, where)
    return Sequence(tuple(moves), stuck, proven=not stuck)


def _with_detours(problem: Problem, where: Mapping[str, str], effort: _Effort) -> Sequence:
    """Each part that blocks itself by a search of its own, before others fill what is free; then the rest."""
    placement = ProblemPlacement(problem)
    moves: list[Move] = []
    tangled = [
        part for part in tied(problem, where) if _straight(problem, {vm: where[vm] for vm in part}).stuck
    ]
    goals = (goal for part in tangled for vm in part for goal in problem.goals_of.get(vm, ()))
    shortest = len(tangled) == 1 or not any(goal.hard and goal.gathers for goal in goals)
    for part in tangled:
        found = _around(placement, where, part, effort, _MORE) if len(part) <= _MOST_TOGETHER else None
        moves.extend(found or ())
        # What does not get there straight needs one migration more at least.
        shortest = shortest and found is not None and sum(len(move.vms) for move in found) == len(part) + 1
    moves.extend(direct_moves(placement, where))
    moves.extend(_disentangled(placement, where, effort))
    stuck = _stuck(placement, where)
    return Sequence(tuple(moves), stuck, shortest and not stuck and not _guessed(problem, where))


def _disentangled(placement: ProblemPlacement, where: Mapping[str, str], effort: _Effort) -> Iterator[Move]:
    """One knot after another, those that take little search first."""
    while (more := _next_detour(placement, where, effort)) is not None:
        yield from more
        yield from direct_moves(placement, where)


def _next_detour(placement: ProblemPlacement, where: Mapping[str, str], effort: _Effort) -> list[Move] | None:
    """Moves that bring some more VMs to their hosts: those of one knot, else all at once."""
    stuck = _stuck(placement, where)
    knots = list(dict.fromkeys(_knot(placement, where, stuck, vm) for vm in sorted(stuck)))
    tries = [(knot, most) for most in (_A_LITTLE, _MORE) for knot in knots]
    if 0 < len(stuck) <= _MOST_TOGETHER:
        tries.append((tuple(sorted(stuck)), _MOST))
    for few, most in tries:
        found = _around(placement, where, few, effort, most)
        if found is not None:
            return found
    return None


def _knot(
    placement: ProblemPlacement, where: Mapping[str, str], stuck: Collection[str], first: str
) -> tuple[str, ...]:
    """A VM with those that are still on the host that it is bound for, and so on."""
    knot = [first]
    for one in knot:
        for other in sorted(stuck):
            if other not in knot and placement.where(other) == where[one] and len(knot) < _OF_A_KNOT:
                knot.append(other)
    return tuple(sorted(knot))


def _around(
    placement: ProblemPlacement, where: Mapping[str, str], few: tuple[str, ...], effort: _Effort, most: int
) -> list[Move] | None:
    """The way of a few VMs to their hosts, with `placement` at its end; None if none was found."""
    if effort.over:
        return None
    with effort.budget.share(most) as share:
        search = DetourSearch(placement, where, around(placement, where, few))
        found = search.run(effort.deadline, share)
    if not found.arrives:
        return None
    for move in found.moves:
        placement.move(move.vms, move.host)
    return list(found.moves)


def _better(problem: Problem, one: Sequence, other: Sequence) -> Sequence:
    """That which leaves less violated, then that which strands fewer VMs, then the shorter one."""

    def merit(tried: Sequence) -> tuple[object, ...]:
        return *score(placement_after(problem, tried.moves))[:4], len(tried.stuck), tried.migrations

    return min(one, other, key=merit)


def _without_the_useless(problem: Problem, tried: Sequence, deadline: Deadline) -> Sequence:
    """Where VMs are stuck, some moves were for them alone: as many fall as the others do without."""
    if not tried.stuck or tried.migrations > _MOST_TO_TRIM:
        return tried
    moves = tried.moves
    for vm in [move.vms[0] for move in reversed(moves)]:
        if deadline.over:
            break
        fewer = tuple(move for move in moves if move.vms[0] != vm)
        if (
            are_legal(problem, fewer)
            and score(placement_after(problem, fewer))[:4] <= score(placement_after(problem, moves))[:4]
        ):
            moves = fewer
    dropped = {vm for move in tried.moves for vm in move.vms} - {vm for move in moves for vm in move.vms}
    return Sequence(moves, tried.stuck | dropped, tried.proven)


def _stuck(placement: ProblemPlacement, where: Mapping[str, str]) -> frozenset[str]:
    return frozenset(vm for vm, host in where.items() if placement.where(vm) != host)


def _guessed(problem: Problem, where: Mapping[str, str]) -> bool:
    """Whether rules without a form take part."""
    goals = (goal for vm in where for goal in problem.goals_of.get(vm, ()))
    return problem.guessed or any(goal.hard and goal.opaque for goal in goals)
