"""How good ends are, as rows of numbers that are compared with bounds; and how the best is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import add

from ovirt_placement.planning.assignment.optimal.model import Model, ModelScope
from ovirt_placement.planning.assignment.optimal.stages import NO_HINT, Solved, Stages
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.gathering import detour, detouring
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.problem.score import score

#: Hard, crowding, soft by level, pairs, migrations (with detours): what is proven, as one row of numbers.
Value = tuple[int, ...]


def value_of(solved: Solved, problem: Problem) -> Value:
    """What of the values of a model is compared with bounds."""
    return solved.values[: length_of_value(problem)]


def length_of_value(problem: Problem) -> int:
    return problem.levels + 3


def counted(violated: Iterable[Goal], placement: ProblemPlacement) -> list[int]:
    """A partial value that counts these violated goals, with their pairs."""
    counts = [0] * length_of_value(placement.problem)
    for goal in violated:
        counts[goal.level if goal.hard else goal.level + 1] += 1
        counts[-2] += goal.pairs(placement.crowd(goal))
    return counts


def value_at(placement: ProblemPlacement, candidates: CandidateHosts) -> Value:
    """The value of an end, detours among its migrations; a group counts as violated where no way leads."""
    problem, ended = placement.problem, score(placement)
    found = detouring(problem, candidates, placement.moved)
    detours = [detour(problem, candidates, goal, host) for goal, host in found]
    headroom_deficit = ended.headroom_deficit_mb + ended.headroom_deficit_cpu
    migrations = ended.migrations + sum(more or 0 for more in detours)
    return (ended.hard + detours.count(None), headroom_deficit, *ended.soft, ended.pairs, migrations)


def total(values: Collection[Value], problem: Problem) -> Value:
    """Bounds of parts that have nothing in common but room may be summed field by field."""
    summed: Value = (0,) * length_of_value(problem)
    for value in values:
        summed = tuple(map(add, summed, value))
    return summed


def put(placement: ProblemPlacement, where: Mapping[str, str]) -> None:
    for vm, host in where.items():
        placement.move((vm,), host)


#: In larger models ends as good as a known bound are looked for first (a share of the time).
_SMALL = 2_000
_HELD_SHARE = 0.7


def solve(
    placement: ProblemPlacement,
    candidates: CandidateHosts,
    domains: Mapping[str, tuple[str, ...]],
    deadline: Deadline,
    *,
    room: bool = True,
    evenly: bool = True,
    workers: int = 1,
    least: Sequence[int] = (),
    work: float | None = None,
    hint: Mapping[str, str] = NO_HINT,
) -> Solved | None:
    """The best end of the VMs that have domains, all others staying where they are."""
    if not domains:
        return None
    scope = ModelScope(placement, candidates, domains, room)
    if least and sum(map(len, domains.values())) > _SMALL:
        stages = Stages(Model(scope), workers=workers, evenly=evenly, work=work)
        solved = stages.solve(deadline.within(_HELD_SHARE), least, hint, held=True)
        if solved is not None:
            return solved
    return Stages(Model(scope), workers=workers, evenly=evenly, work=work).solve(deadline, least, hint)
