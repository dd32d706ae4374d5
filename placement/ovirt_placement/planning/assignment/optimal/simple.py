"""Parts so simple that their best end can be read off: one positive group, with room where most of it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ovirt_placement.planning.assignment.optimal.parts import Part
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.placement import ProblemPlacement


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
            and all(host in candidates.of(vm) for vm in coming)
            and (not goal.hard or host in candidates.company(goal))
        ):
            ends.append((memory_mb, host in problem.failover, memory_mb - placement.free_mb(host), host))
    if not ends:
        return None
    host = min(ends)[-1]
    return {vm: host for vm in goal.vms if problem.where[vm] != host}


def _spare_cpu(placement: ProblemPlacement, host: str, unknown: float) -> float:
    """What is left of a host's CPU above its headroom; `unknown` where nobody knows."""
    problem = placement.problem
    if host not in problem.spare_cpu:
        return unknown
    spare = problem.spare_cpu[host]
    for vm, target in placement.moved.items():
        spare -= problem.cpu.get(vm, 0.0) * ((target == host) - (problem.where[vm] == host))
    return spare
