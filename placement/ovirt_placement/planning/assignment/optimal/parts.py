"""Takes a problem apart: VMs that goals tie together, of those parts in which something is to be repaired."""

from __future__ import annotations

from dataclasses import dataclass

from ovirt_placement.planning.assignment.optimal.model import goals_of
from ovirt_placement.planning.lower_bound import fixed
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Problem


@dataclass(frozen=True)
class Part:
    """Movable VMs that goals tie together, and these goals; all others only take room from them."""

    vms: tuple[str, ...]
    goals: tuple[Goal, ...]

    @property
    def violated(self) -> tuple[Goal, ...]:
        """What is to be repaired."""
        return tuple(goal for goal in self.goals if goal.wanted and not goal.satisfied)


def parts_of(problem: Problem, candidates: CandidateHosts) -> list[Part]:
    """All parts in which something is to be repaired and somebody can move."""
    seen: set[str] = set()
    found: list[Part] = []
    for goal in problem.goals:
        if _hopeful(problem, goal):
            for vm in goal.vms:
                if vm not in seen and len(candidates.of(vm)) > 1:
                    vms = _tied(problem, candidates, vm)
                    seen |= vms
                    found.append(Part(tuple(sorted(vms)), tuple(goals_of(problem, vms))))
    return sorted(found, key=lambda part: (min(goal.level for goal in part.violated), part.vms))


def _hopeful(problem: Problem, goal: Goal) -> bool:
    """Whether some end might repair it, or leave less of it to be repaired."""
    if not goal.wanted or goal.satisfied or goal.form is None:
        return False
    return not fixed(problem, goal) or (goal.partly and _free(problem, goal))


def _free(problem: Problem, goal: Goal) -> bool:
    """Whether one of its VMs may go to a host that none of it is on: the engine lets it go nowhere else."""
    taken = {problem.where[vm] for vm in goal.vms}
    return any(not taken.issuperset(problem.targets[vm]) for vm in goal.vms)


def _tied(problem: Problem, candidates: CandidateHosts, first: str) -> set[str]:
    """VMs that may move and share goals with the first one, or with one that does."""
    found, waiting = {first}, [first]
    read: set[int] = set()
    while waiting:
        for goal in problem.goals_of.get(waiting.pop(), ()):
            if goal.number in read or (not goal.wanted and not goal.satisfied):
                continue
            read.add(goal.number)
            fresh = [vm for vm in goal.vms if vm not in found and len(candidates.of(vm)) > 1]
            found.update(fresh)
            waiting.extend(fresh)
    return found


def offenders(part: Part, problem: Problem) -> set[str]:
    """Those VMs of a part whose moving can repair something, if all goes well."""
    found: set[str] = set()
    start = ProblemPlacement(problem)
    for goal in part.violated:
        found.update(goal.vms if goal.gathers else goal.constraint.offenders(start))
    return found.intersection(part.vms)
