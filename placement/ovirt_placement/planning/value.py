"""What a sequence of moves is worth, as one row of numbers: less is better, from the first to the last."""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.problem.score import Score, score

#: Hard, crowding, soft by level, pairs, migrations; of a sequence, a VM that is migrated twice counts twice.
Value = tuple[int, ...]


def value(problem: Problem, moves: Sequence[Move]) -> Value:
    """Of moves from the start."""
    placement = ProblemPlacement(problem)
    for move in moves:
        placement.move(move.vms, move.host)
    return (*value_of(score(placement))[:-1], sum(len(move.vms) for move in moves))


def value_of(one: Score) -> Value:
    """Of an end to which every VM goes straight."""
    return (
        one.hard,
        one.headroom_deficit_mb + one.headroom_deficit_cpu,
        *one.soft,
        one.pairs,
        one.migrations,
    )
