"""Parts of a problem: VMs that goals tie together, with what is to be repaired of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ovirt_placement.planning.assignment.optimal.model import goals_of
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.placement import ProblemPlacement, brought
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.solver.bound import fixed, least_excess


@dataclass(frozen=True)
class Part:
    """Movable VMs that goals tie together, and these goals; all others only take room from them."""

    vms: tuple[str, ...]
    goals: tuple[Goal, ...]

    @property
    def violated(self) -> tuple[Goal, ...]:
        """What is to be repaired."""
        return tuple(goal for goal in self.goals if goal.wanted and not goal.satisfied)

    @property
    def sums(self) -> bool:
        """Whether any of that limits what is on some hosts in sum."""
        return any(goal.sum is not None for goal in self.violated)


def parts_of(problem: Problem, candidates: CandidateHosts) -> list[Part]:
    """All parts in which something is to be repaired and a VM can move."""
    seen: set[str] = set()
    found: list[Part] = []
    for goal in problem.goals:
        if _hopeful(problem, goal):
            for vm in goal.vms:
                if vm not in seen and len(candidates.hosts_of(vm)) > 1:
                    vms = _tied(problem, candidates, vm)
                    seen |= vms
                    found.append(Part(tuple(sorted(vms)), tuple(goals_of(problem, vms))))
    return sorted(found, key=lambda part: (min(goal.level for goal in part.violated), part.vms))


def _hopeful(problem: Problem, goal: Goal) -> bool:
    """Whether some end might repair it, or leave less of it to be repaired."""
    if not goal.wanted or goal.satisfied or goal.form is None:
        return False
    return not fixed(problem, goal) or _may_fall(problem, goal)


def _may_fall(problem: Problem, goal: Goal) -> bool:
    """Whether less of it might be violated in the end, as far as can be seen.

    A VM of an affinity group may go to a host that none of it is on: the engine lets it go nowhere else.
    """
    count = problem.start_count(goal) if goal.partly else None
    if count is None or goal.excess(count) <= least_excess(problem, goal):
        return False
    if not goal.by_pairs:
        return True
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
            fresh = [vm for vm in goal.vms if vm not in found and len(candidates.hosts_of(vm)) > 1]
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


def gathered(
    part: Part, placement: ProblemPlacement, candidates: CandidateHosts, *, headroom: bool = True
) -> Mapping[str, str] | None:
    """The fewest VMs to the host that has most; None if that is not so simple.

    Where headroom is kept, no end of the part is better, whatever room there is.
    """
    if len(part.goals) != 1 or not part.goals[0].gathers:
        return None
    (goal,) = part.goals
    problem = placement.problem
    crowd = Counter(problem.where[vm] for vm in goal.vms)
    most = max(crowd.values())
    ends = []
    for host in sorted(crowd):
        coming = [vm for vm in goal.vms if problem.where[vm] != host]
        memory_mb = sum(problem.memory_mb.get(vm, 0) for vm in coming)
        cpu = sum(problem.cpu.get(vm, 0.0) for vm in coming)
        spare_mb = placement.free_mb(host) - problem.free_mb.get(host, 0) + problem.spare_mb.get(host, 0)
        if (
            crowd[host] == most
            and memory_mb <= placement.free_mb(host)
            and (not headroom or (memory_mb <= spare_mb and cpu <= _spare_cpu(placement, host, cpu)))
            and all(host in candidates.hosts_of(vm) for vm in coming)
            and (not goal.hard or host in candidates.company(goal))
        ):
            ends.append((memory_mb, host in problem.failover, memory_mb - placement.free_mb(host), host))
    if not ends:
        return None
    host = min(ends)[-1]
    return {vm: host for vm in goal.vms if problem.where[vm] != host}


def _spare_cpu(placement: ProblemPlacement, host: str, unknown: float) -> float:
    """What is left of a host's CPU above its headroom; `unknown` where it is not known."""
    problem = placement.problem
    if host not in problem.spare_cpu:
        return unknown
    return problem.spare_cpu[host] - brought(problem, placement.moved)[1][host]
