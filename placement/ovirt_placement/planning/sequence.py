"""Puts moves into a legal sequence: straight ones first, then detours for what blocks itself."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ovirt_placement.planning.detours import DetourSearch, around, direct_moves, whole
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.ends import score, value
from ovirt_placement.planning.problem.placement import ProblemPlacement, are_legal, placement_after
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.rules.elements.assignment import Budget

#: Standings that searches look at, a millisecond each: of a small cluster as a whole; else in all.
_WHOLE = 20_000
_PARTS = 4_000
#: And in a search around a few VMs: at first, for those of a knot, and for all that are stuck.
_A_LITTLE, _MORE, _MOST = 100, 600, 3_000
#: VMs that are searched together.
_MOST_TOGETHER = 8
#: VMs of one knot that are searched together where all are too many.
_OF_A_KNOT = 5


@dataclass(frozen=True, slots=True)
class MoveSequence:
    """Legal moves, one by one."""

    moves: tuple[Move, ...]
    stuck: frozenset[str]
    #: No legal way with fewer migrations leads all VMs to their hosts.
    proven: bool


def sequence(problem: Problem, where: Mapping[str, str], deadline: Deadline) -> MoveSequence:
    """A way with few migrations; where every VM gets straight to its host there is no shorter one.

    Where VMs are stuck, some moves were for them alone: as many fall as the others do without.
    """
    placement = ProblemPlacement(problem)
    moves = direct_moves(placement, where)
    if not _stuck(placement, where):
        return MoveSequence(tuple(moves), frozenset(), proven=True)
    proven, scope = False, whole(ProblemPlacement(problem))
    found: tuple[Move, ...] = ()
    if scope is not None:
        search = DetourSearch(ProblemPlacement(problem), where, scope)
        searched = search.run(deadline.within(0.5), Budget(_WHOLE))
        found, proven = searched.moves, searched.exhausted
    if not proven:
        moves.extend(_disentangled(placement, where, deadline, Budget(_PARTS)))
        found = min((tuple(moves), found), key=lambda one: _merit(problem, one, where))
    stuck = _stuck(placement_after(problem, found), where)
    if stuck:
        found = shortened(problem, found, deadline)
        stuck = _stuck(placement_after(problem, found), where)
    goals = (goal for vm in where for goal in problem.goals_of.get(vm, ()))
    guessed = problem.guessed or any(goal.hard and goal.opaque for goal in goals)
    return MoveSequence(found, stuck, proven and not guessed)


def _merit(problem: Problem, moves: Sequence[Move], where: Mapping[str, str]) -> tuple[object, ...]:
    """What is left violated, then how many VMs are stuck, then the migrations."""
    end = placement_after(problem, moves)
    return *score(end)[:4], len(_stuck(end, where)), sum(len(move.vms) for move in moves)


def _disentangled(
    placement: ProblemPlacement, where: Mapping[str, str], deadline: Deadline, budget: Budget
) -> Iterator[Move]:
    """Moves that bring one knot after another to its hosts, those that take little search first."""
    while stuck := _stuck(placement, where):
        knots = list(dict.fromkeys(_knot(placement, where, stuck, vm) for vm in sorted(stuck)))
        tries = [(knot, most) for most in (_A_LITTLE, _MORE) for knot in knots]
        if len(stuck) <= _MOST_TOGETHER:
            tries.append((tuple(sorted(stuck)), _MOST))
        for few, most in tries:
            if deadline.over or budget.left <= 0:
                return
            with budget.share(most) as share:
                search = DetourSearch(placement, where, around(placement, where, few))
                found = search.run(deadline, share)
            if found.arrives:
                for move in found.moves:
                    placement.move(move.vms, move.host)
                yield from found.moves
                yield from direct_moves(placement, where)
                break
        else:
            return


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


def _stuck(placement: ProblemPlacement, where: Mapping[str, str]) -> frozenset[str]:
    return frozenset(vm for vm, host in where.items() if placement.where(vm) != host)


#: Sequences with more moves are left as they are.
_MOST_TO_SHORTEN = 150


def shortened(problem: Problem, moves: tuple[Move, ...], deadline: Deadline) -> tuple[Move, ...]:
    """Legal moves that leave no more violated, and no more of them: none can be left out or cut short."""
    at_once = tuple(direct_moves(ProblemPlacement(problem), placement_after(problem, moves).moved))
    moves = min(moves, at_once, key=lambda one: value(problem, one))
    worth, place, unchanged = value(problem, moves), 0, 0
    while unchanged < len(moves) <= _MOST_TO_SHORTEN and not deadline.over:
        place %= len(moves)
        for fewer in _variants(moves, place):
            if (reached := value(problem, fewer)) < worth and are_legal(problem, fewer):
                moves, worth, unchanged = fewer, reached, 0
                break
        else:
            place, unchanged = place + 1, unchanged + 1
    return moves


def _variants(moves: tuple[Move, ...], place: int) -> Iterator[tuple[Move, ...]]:
    """Without all moves of a VM; without one of them; and with its last host for the one before."""
    its = moves[place].vms
    yield tuple(move for move in moves if move.vms != its)
    later = next((at for at in range(place + 1, len(moves)) if moves[at].vms == its), None)
    if later is not None:
        yield (*moves[:place], *moves[place + 1 :])
        yield (*moves[:place], moves[later], *moves[place + 1 : later], *moves[later + 1 :])
