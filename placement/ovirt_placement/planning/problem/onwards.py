"""The problem as it is once some moves are made: what a plan goes on from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move, Problem


def after(problem: Problem, moves: Sequence[Move]) -> Problem:
    """The same problem with the end of these moves as its start."""
    placement = ProblemPlacement(problem)
    for move in moves:
        placement.move(move.vms, move.host)
    goals = tuple(_from(placement, goal) for goal in problem.goals)
    taken_mb = {host: problem.free_mb[host] - placement.free_mb(host) for host in problem.hosts}
    taken_cpu = dict.fromkeys(problem.hosts, 0.0)
    for vm, host in placement.moved.items():
        for place, sign in ((host, 1), (problem.where[vm], -1)):
            if place in taken_cpu:
                taken_cpu[place] += sign * problem.cpu[vm]
    return replace(
        problem,
        free_mb={host: placement.free_mb(host) for host in problem.hosts},
        spare_mb={host: spare - taken_mb[host] for host, spare in problem.spare_mb.items()},
        spare_cpu={host: spare - taken_cpu[host] for host, spare in problem.spare_cpu.items()},
        used_cpu={host: used + taken_cpu[host] for host, used in problem.used_cpu.items()},
        where={**problem.where, **placement.moved},
        goals=goals,
        goals_of={vm: tuple(goals[goal.number] for goal in its) for vm, its in problem.goals_of.items()},
    )


def _from(placement: ProblemPlacement, goal: Goal) -> Goal:
    satisfied = not placement.violated(goal)
    return replace(goal, satisfied=satisfied, surplus=0 if satisfied else goal.constraint.surplus(placement))
