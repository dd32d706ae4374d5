"""How good ends are, as rows of numbers that are compared with bounds; and how the best is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import add

from ovirt_placement.planning.choosing.optimal.model import Model, Scope
from ovirt_placement.planning.choosing.optimal.stages import Solved, Stages
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.gathering import detour, detouring
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.problem.reach import Reach
from ovirt_placement.planning.problem.score import score
from ovirt_placement.planning.problem.standing import Standing

#: Hard, crowding, soft by level, pairs, migrations (with detours): what is proven, as one row of numbers.
Value = tuple[int, ...]


def value_of(solved: Solved, problem: Problem) -> Value:
    """What of the values of a model is compared with bounds."""
    return solved.values[: length_of_value(problem)]


def length_of_value(problem: Problem) -> int:
    return problem.levels + 3


def counted(broken: Iterable[Goal], standing: Standing) -> list[int]:
    """A value in the making that counts these broken goals, with their pairs."""
    counts = [0] * length_of_value(standing.problem)
    for goal in broken:
        counts[goal.level if goal.hard else goal.level + 1] += 1
        counts[-2] += goal.pairs(standing.crowd(goal))
    return counts


def value_at(standing: Standing, reach: Reach) -> Value:
    """The value of an end, detours among its migrations."""
    problem, ended = standing.problem, score(standing)
    detours = sum(
        detour(problem, reach, goal, host) or 0 for goal, host in detouring(problem, reach, standing.moved)
    )
    crowding = ended.crowding_mb + ended.crowding_cpu
    return (ended.hard, crowding, *ended.soft, ended.pairs, ended.migrations + detours)


def total(values: Collection[Value], problem: Problem) -> Value:
    """Bounds of parts that have nothing in common but room may be summed field by field."""
    summed: Value = (0,) * length_of_value(problem)
    for value in values:
        summed = tuple(map(add, summed, value))
    return summed


def put(standing: Standing, where: Mapping[str, str]) -> None:
    for vm, host in where.items():
        standing.move((vm,), host)


def solve(
    standing: Standing,
    reach: Reach,
    domains: Mapping[str, tuple[str, ...]],
    deadline: Deadline,
    *,
    room: bool = True,
    evenly: bool = True,
    workers: int = 1,
    least: Sequence[int] = (),
    work: float | None = None,
) -> Solved | None:
    """The best end of the VMs that have domains, all others staying where they are."""
    if not domains:
        return None
    model = Model(Scope(standing, reach, domains, room))
    return Stages(model, workers=workers, evenly=evenly, work=work).solve(deadline, least)
