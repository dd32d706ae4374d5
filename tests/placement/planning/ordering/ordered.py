"""Moves in a legal sequence, each with those that it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ovirt_placement.planning.dependencies import waits
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.sequence import sequence


class OrderedMove(NamedTuple):
    move: Move
    after: tuple[int, ...]


class Order(NamedTuple):
    moves: tuple[OrderedMove, ...]
    stuck: frozenset[str]
    proven: bool


def order(problem: Problem, where: Mapping[str, str], deadline: Deadline) -> Order:
    """The moves that bring VMs to their hosts."""
    found = sequence(problem, where, deadline)
    return Order(tuple(map(OrderedMove, found.moves, waits(problem, found.moves))), found.stuck, found.proven)
