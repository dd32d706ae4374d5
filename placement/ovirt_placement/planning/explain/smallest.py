"""The smallest of the sets that are contradictory, with proof: by what every such set must have a part of.

Source: Ignatiev, Previti, Liffiton, Marques-Silva: Smallest MUS Extraction with Minimal Hitting Set
Dualization (CP 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Protocol

from ovirt_placement.planning.cp_sat import cp_model
from ovirt_placement.planning.explain.question import OutOfWork
from ovirt_placement.rules.asks import Ask

_Asks = tuple[Ask, ...]

#: Of no more smaller sets each is tried: the questions about them are the small ones.
_FEW = 200


class Judges(Protocol):
    """Each raises `OutOfWork` if it does not come to an answer."""

    def contradictory(self, asks: Sequence[Ask]) -> _Asks | None:
        """A part of these that cannot be satisfied together; None if all can be."""
        ...

    def left_out(self, asks: Sequence[Ask], among: Sequence[Ask]) -> _Asks:
        """Of `among`, few without which the rest can be satisfied with all of `asks`, which can be."""
        ...


def smallest(judges: Judges, among: Sequence[Ask], found: _Asks) -> tuple[_Asks, bool]:
    """The smallest contradictory set among some, of which one is found; and whether that is proven."""
    best = _minimal(judges, found)
    few = sum(comb(len(among), size) for size in range(len(best))) <= _FEW
    ways = (_by_trying_all, _by_what_all_have_a_part_of)
    for prove in ways if few else reversed(ways):
        try:
            return prove(judges, among, best), True
        except OutOfWork:
            pass
    return best, False


def _minimal(judges: Judges, found: _Asks) -> _Asks:
    """Without what is not needed for it, as far as that is found out; what is about most VMs goes first."""
    left = found
    for one in sorted(found, key=lambda ask: -len(ask.vms)):
        others = tuple(other for other in left if other is not one)
        try:
            fewer = judges.contradictory(others) if len(others) < len(left) else None
        except OutOfWork:
            continue
        left = left if fewer is None else fewer
    return left


def _by_what_all_have_a_part_of(judges: Judges, among: Sequence[Ask], best: _Asks) -> _Asks:
    each: list[_Asks] = []
    while True:
        tried = _least_hitting(among, each)
        if len(tried) >= len(best):
            return best
        if judges.contradictory(tried) is not None:
            return tried
        each.append(judges.left_out(tried, among))


def _by_trying_all(judges: Judges, among: Sequence[Ask], best: _Asks) -> _Asks:
    for size in range(1, len(best)):
        for tried in combinations(among, size):
            if judges.contradictory(tried) is not None:
                return tried
    return best


def _least_hitting(among: Sequence[Ask], each: Sequence[_Asks]) -> _Asks:
    """The fewest that have something of each set. Raises `OutOfWork`."""
    cp = cp_model.CpModel()
    chosen = {id(one): cp.new_bool_var("") for one in among}
    for some in each:
        cp.add_bool_or(chosen[id(one)] for one in some)
    cp.minimize(sum(chosen.values()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 1.0
    if solver.solve(cp) != cp_model.OPTIMAL:
        raise OutOfWork
    return tuple(one for one in among if solver.boolean_value(chosen[id(one)]))
