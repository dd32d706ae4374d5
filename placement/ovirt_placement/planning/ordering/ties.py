"""Which VMs that move can stand in each other's way: the rest of a plan need not be searched with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping

from ovirt_placement.planning.problem.problem import Problem


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
