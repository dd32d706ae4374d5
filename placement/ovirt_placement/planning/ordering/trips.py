"""Moves of a sequence, VM by VM: who leaves which host and arrives at which, and when in the sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ovirt_placement.planning.problem.problem import Move, Problem


@dataclass(frozen=True, slots=True)
class Trip:
    """One VM in one move."""

    #: The place of the move in the sequence.
    at: int
    vm: str
    source: str
    target: str


def trips(problem: Problem, moves: Sequence[Move]) -> list[tuple[Trip, ...]]:
    """Of each move, those of its VMs."""
    return list(_trips(problem, moves))


def _trips(problem: Problem, moves: Sequence[Move]) -> Iterator[tuple[Trip, ...]]:
    where: dict[str, str] = {}
    for at, move in enumerate(moves):
        yield tuple(Trip(at, vm, where.get(vm, problem.where[vm]), move.host) for vm in move.vms)
        where.update(dict.fromkeys(move.vms, move.host))
