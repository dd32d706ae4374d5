"""Where VMs may end at all: by their targets, and by what the engine lets no sequence of migrations do.

Split positive groups that are to end where none of them is gather elsewhere first, and go on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.rules.elements.constraints import AtMost


class CandidateHosts:
    """Hosts on which each VM may end, its own first; found when asked for."""

    def __init__(self, problem: Problem, *, other: bool = False) -> None:
        """`other` says whether VMs of rules without a form may move."""
        self._problem = problem
        self._other = other
        self._known: dict[str, tuple[str, ...]] = {}
        self._may_gather: dict[int, bool] = {}
        self._company: dict[int, frozenset[str]] = {}
        self._fixed: dict[int, Mapping[str, frozenset[str]]] = {}

    def hosts_of(self, vm: str) -> tuple[str, ...]:
        """All hosts on which a VM may end: one, if it cannot move."""
        known = self._known.get(vm)
        if known is None:
            own = self._problem.where[vm]
            targets = self._targets(vm)
            known = (own, *(host for host in self._problem.hosts if host in targets and host != own))
            self._known[vm] = known
        return known

    def moves_whole(self, goal: Goal) -> bool:
        """Whether a hard positive group, once it stands whole, may migrate whole to another host."""
        known = self._may_gather.get(goal.number)
        if known is None:
            known = self._may_gather[goal.number] = self._closes(goal)
        return known

    def company(self, goal: Goal) -> frozenset[str]:
        """Hosts to which all members of a positive group may come straight, as far as peers decide it."""
        known = self._company.get(goal.number)
        if known is None:
            known = self._company[goal.number] = company(self._problem, goal)
        return known

    def _targets(self, vm: str) -> frozenset[str]:
        targets = self._problem.targets[vm]
        for goal in self._problem.goals_of.get(vm, ()):
            if not targets:
                break
            if goal.form is None and not self._other:
                return frozenset()
            if not goal.binding or len(goal.vms) < 2:
                continue
            if goal.limit is not None:
                targets -= frozenset() if goal.lenient else self._full(goal, vm)
            elif goal.gathers and not self.moves_whole(goal):
                # One by one its members come only to where others are; a whole group cannot be left.
                targets = frozenset() if goal.satisfied else targets & places(self._problem, goal.vms)
        return targets

    def _closes(self, goal: Goal) -> bool:
        members, problem = frozenset(goal.vms), self._problem
        return all(
            problem.targets[vm]
            and not any(peer in problem.where for peer in problem.peers.get(vm, frozenset()) - members)
            and not any(
                other.binding and not other.lenient and other.parts(members)
                for other in problem.goals_of.get(vm, ())
            )
            for vm in goal.vms
        )

    def _full(self, goal: Goal, vm: str) -> frozenset[str]:
        """Hosts where a member may never come, since too many hold the place who never leave it."""
        limit = goal.limit
        if limit is None:
            return frozenset()
        staying = self._staying(goal, limit)
        own = limit.own_set(vm)
        full = {place for place, sets in staying.items() if len(sets - {own}) >= limit.most}
        if not limit.place_of:
            return frozenset(full)
        return frozenset(host for host in self._problem.hosts if limit.place(host) in full)

    def _staying(self, goal: Goal, limit: AtMost) -> Mapping[str, frozenset[str]]:
        """By place, the sets of members that cannot leave it."""
        known = self._fixed.get(goal.number)
        if known is None:
            found: defaultdict[str, set[str]] = defaultdict(set)
            for vm in goal.vms:
                if not self._problem.targets[vm]:
                    for host in places(self._problem, (vm,)):
                        found[limit.place(host)].add(limit.own_set(vm))
            known = {place: frozenset(sets) for place, sets in found.items()}
            self._fixed[goal.number] = known
        return known


def company(problem: Problem, goal: Goal) -> frozenset[str]:
    """Hosts where members of a positive group are, and to which no other needs to make a detour.

    The engine sends a VM alone only to those that it shares a group with. Those that are tied to the others
    by a VM that is down alone get to a host without one of them only at once, from one host: where they
    stand whole, or besides a member of another closure, whose peers then count for them.
    """
    hosts = places(problem, goal.vms)
    for closure in closures(problem, goal):
        homes = {problem.where[vm] for vm in closure}
        elsewhere = any(problem.where[vm] in homes for vm in goal.vms if vm not in closure)
        if len(homes) > 1 and not elsewhere:
            hosts &= places(problem, closure)
    return hosts


def closures(problem: Problem, goal: Goal) -> list[frozenset[str]]:
    """Members that groups tie together by VMs that run, two at least: as the engine's filter sees it."""
    left = dict.fromkeys(goal.vms)
    found = []
    while left:
        closure = waiting = {next(iter(left))}
        while waiting:
            waiting = {peer for vm in waiting for peer in problem.peers.get(vm, ()) if peer in left} - closure
            closure = closure | waiting
        for vm in closure:
            del left[vm]
        if len(closure) > 1:
            found.append(frozenset(closure))
    return found


def places(problem: Problem, vms: Iterable[str]) -> frozenset[str]:
    """Hosts where any of these VMs is, or is on its way to."""
    return frozenset(host for vm in vms for host in (problem.where[vm], *problem.pending.get(vm, ())))


def meeting_hosts(problem: Problem, candidates: CandidateHosts, goal: Goal) -> list[str]:
    """Hosts of members to which all others can come straight, that with the most members first."""
    crowd = Counter(problem.where[vm] for vm in goal.vms)
    return sorted(
        (
            host
            for host in candidates.company(goal)
            if all(host in candidates.hosts_of(vm) for vm in goal.vms)
        ),
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
    able = [one for one in crowd if all(one in candidates.hosts_of(vm) for vm in goal.vms)]
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
