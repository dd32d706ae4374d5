"""Leaves out of a legal sequence whatever it can do without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.ordering.direct import direct_moves
from ovirt_placement.planning.problem.placement import ProblemPlacement, are_legal
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.value import value

#: Sequences with more moves are left as they are.
_MOST = 150


def shortened(problem: Problem, moves: tuple[Move, ...], deadline: Deadline) -> tuple[Move, ...]:
    """Legal moves that leave no more violated, and no more of them."""
    moves = min(moves, _straight(problem, moves), key=lambda one: value(problem, one))
    shorter = True
    while shorter and len(moves) <= _MOST:
        shorter = False
        worth = value(problem, moves)
        for fewer in _variants(moves):
            if deadline.over:
                return moves
            if are_legal(problem, fewer) and value(problem, fewer) < worth:
                moves, shorter = fewer, True
                break
    return moves


def _straight(problem: Problem, moves: Sequence[Move]) -> tuple[Move, ...]:
    """Each VM to its last host at once, as far as it gets there."""
    end = ProblemPlacement(problem)
    for move in moves:
        end.move(move.vms, move.host)
    return tuple(direct_moves(ProblemPlacement(problem), end.moved))


def _variants(moves: tuple[Move, ...]) -> Iterator[tuple[Move, ...]]:
    """Without all moves of a VM; without one of them; and with its last host for the one before."""
    for vms in dict.fromkeys(move.vms for move in moves):
        yield tuple(move for move in moves if move.vms != vms)
    for place, move in enumerate(moves):
        later = next((at for at in range(place + 1, len(moves)) if moves[at].vms == move.vms), None)
        if later is not None:
            yield (*moves[:place], *moves[place + 1 :])
            straight = Move(move.vms, moves[later].host)
            yield (*moves[:place], straight, *moves[place + 1 : later], *moves[later + 1 :])
