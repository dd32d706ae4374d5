"""Split positive groups that are to end where none of them is: they gather elsewhere first, and go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts, places
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.problem import Problem


def meeting_hosts(problem: Problem, candidates: CandidateHosts, goal: Goal) -> list[str]:
    """Hosts of members to which all others can come straight, that with the most members first."""
    crowd = Counter(problem.where[vm] for vm in goal.vms)
    return sorted(
        (host for host in candidates.company(goal) if all(host in candidates.of(vm) for vm in goal.vms)),
        key=lambda host: (-crowd[host], -problem.free_mb.get(host, 0), host),
    )


def is_fresh(candidates: CandidateHosts, goal: Goal, host: str) -> bool:
    """Whether a split hard positive group comes to a host by detours alone: some of it see no peer there."""
    if not goal.hard or goal.satisfied or not goal.gathers:
        return False
    return host not in candidates.company(goal)


def detour(problem: Problem, candidates: CandidateHosts, goal: Goal, host: str) -> int | None:
    """Migrations that coming to such a host costs beyond one for each VM; None if no way leads there.

    At least, that is: members of a closure gather, where others are there; else all do so first.
    """
    crowd = Counter(problem.where[vm] for vm in goal.vms)
    if host in places(problem, goal.vms):
        return 1
    able = [one for one in crowd if all(one in candidates.of(vm) for vm in goal.vms)]
    if not able or not candidates.moves_whole(goal):
        return None
    return min(len(goal.vms) - crowd[one] + (one not in candidates.company(goal)) for one in able)


def detouring(
    problem: Problem, candidates: CandidateHosts, where: Mapping[str, str]
) -> list[tuple[Goal, str]]:
    """Groups that an end brings to hosts where none of them was, with these hosts."""
    goals = {goal.number: goal for vm in where for goal in problem.goals_of.get(vm, ())}
    found = []
    for _, goal in sorted(goals.items()):
        ends = {where.get(vm, problem.where[vm]) for vm in goal.vms}
        if len(ends) == 1 and is_fresh(candidates, goal, host := ends.pop()):
            found.append((goal, host))
    return found


def unreached_groups(
    problem: Problem, candidates: CandidateHosts, where: Mapping[str, str]
) -> frozenset[Goal]:
    """Groups that an end brings to hosts to which no way leads: they remain as they are."""
    found = detouring(problem, candidates, where)
    return frozenset(goal for goal, host in found if detour(problem, candidates, goal, host) is None)


def meeting_first(problem: Problem, where: Mapping[str, str]) -> Mapping[str, str]:
    """The end with such groups where they meet; the same end, if there are none."""
    candidates = CandidateHosts(problem)
    met = dict(where)
    for goal, _ in detouring(problem, candidates, where):
        for host in meeting_hosts(problem, candidates, goal)[:1]:
            met |= dict.fromkeys(goal.vms, host)
    return {vm: host for vm, host in met.items() if host != problem.where[vm]}
