"""Where VMs may end, how good such an end is, and what a strategy answers: the end that it chooses.

By their targets, and by what the engine lets no sequence of migrations do. Split positive groups that are to
end where none of them is gather elsewhere first, and go on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.placement import ProblemPlacement, brought, placement_after
from ovirt_placement.planning.problem.problem import Goal, Move, Problem
from ovirt_placement.rules.elements.rule import AtMost


class CandidateHosts:
    """Hosts on which each VM may end, its own first; found when asked for."""

    def __init__(self, problem: Problem, *, other: bool = False) -> None:
        """`other` says whether VMs of rules without a form may move."""
        self._problem = problem
        self._other = other
        #: All hosts on which a VM may end: one, if it cannot move.
        self.hosts_of = cache(self._hosts)
        #: Whether a hard positive group, once it stands whole, may migrate whole to another host.
        self.moves_whole = cache(self._closes)
        #: Hosts to which all members of a positive group may come straight, as far as peers decide it.
        self.company = cache(partial(company, problem))
        self._staying = cache(self._cannot_leave)

    def _hosts(self, vm: str) -> tuple[str, ...]:
        own, targets = self._problem.where[vm], self._targets(vm)
        return (own, *(host for host in self._problem.hosts if host in targets and host != own))

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
                targets -= frozenset() if goal.lenient else self._full(goal, goal.limit, vm)
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

    def _full(self, goal: Goal, limit: AtMost, vm: str) -> frozenset[str]:
        """Hosts where a member may never come, since too many hold the place who never leave it."""
        own = {limit.own_set(vm)}
        full = {place for place, sets in self._staying(goal).items() if len(sets - own) >= limit.most}
        if not limit.place_of:
            return frozenset(full)
        return frozenset(host for host in self._problem.hosts if limit.place(host) in full)

    def _cannot_leave(self, goal: Goal) -> Mapping[str, set[str]]:
        """By place, the sets of members that stay there, of a goal that limits them."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        limit = goal.limit
        for vm in goal.vms:
            if limit is not None and not self._problem.targets[vm]:
                for host in places(self._problem, (vm,)):
                    found[limit.place(host)].add(limit.own_set(vm))
        return found


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


#: Hard, crowding, soft by level, excess, migrations; of a sequence, a VM that is migrated twice counts twice.
Value = tuple[int, ...]


class Score(NamedTuple):
    """Less is better, from the first field to the last.

    Headroom stands before soft rules: it is given up for hard rules alone, and no more of it than must be.
    """

    #: Violated hard rules that count.
    hard: int
    #: By how much what was placed cuts into the headroom of its targets: MiB, and percent of a core.
    headroom_deficit_mb: int
    headroom_deficit_cpu: int
    #: Violated soft rules that count, by level, the highest priority first.
    soft: tuple[int, ...]
    #: How much of the hard rules that remain violated is violated, where less of that is better: of what is
    #: limited in sum, in what is counted; else in VMs, and of affinity groups in pairs that share a host.
    excess: int
    #: VMs that end elsewhere.
    migrations: int
    #: MiB of these.
    memory_mb: int
    #: The fullest target: the share of its memory or CPU that is taken, whichever is more, in thousandths.
    fullest: int

    @property
    def value(self) -> Value:
        """Of an end to which every VM goes straight."""
        crowding = self.headroom_deficit_mb + self.headroom_deficit_cpu
        return (self.hard, crowding, *self.soft, self.excess, self.migrations)


def score(placement: ProblemPlacement) -> Score:
    """Of a placement that is the end of a plan; VMs that went and came back count nothing."""
    problem, moved = placement.problem, placement.moved
    targets = _headroom_used(placement).values()
    hard, *soft = placement.violations()
    return Score(
        hard=hard,
        headroom_deficit_mb=sum(deficit_mb for deficit_mb, _, _ in targets),
        headroom_deficit_cpu=sum(deficit_cpu for _, deficit_cpu, _ in targets),
        soft=tuple(soft),
        excess=placement.excess,
        migrations=len(moved),
        memory_mb=sum(problem.memory_mb[vm] for vm in moved),
        fullest=max((full for _, _, full in targets), default=0),
    )


def crowded(placement: ProblemPlacement) -> tuple[str, ...]:
    """Targets of which what was placed takes some headroom, in the order of the hosts."""
    targets = _headroom_used(placement)
    return tuple(host for host in placement.problem.hosts if any(targets.get(host, ())[:2]))


def _headroom_used(placement: ProblemPlacement) -> Mapping[str, tuple[int, int, int]]:
    """Of each target what is taken of its headroom, MiB and percent of a core, and of all that it has."""
    problem = placement.problem
    memory_in, cpu_in = brought(problem, placement.moved)
    return {
        host: (
            headroom_deficit(memory_in[host], problem.spare_mb[host]),
            headroom_deficit(cpu_in[host], problem.spare_cpu.get(host, cpu_in[host])),
            fill(problem, host, memory_in[host], cpu_in[host]),
        )
        for host in set(placement.moved.values())
    }


def headroom_deficit(taken_in: float, spare: float) -> int:
    """What the plan takes of a host's headroom; what was gone before it is not its doing."""
    return max(0, round(taken_in - max(0.0, spare)))


def fill(problem: Problem, host: str, memory_in: int, cpu_in: float) -> int:
    """The share of a host that is taken once a plan has put so much there, in thousandths.

    One that is kept for failover counts as full before.
    """
    memory = 1.0 - (problem.free_mb[host] - memory_in) / max(1, problem.size_mb[host])
    used = problem.used_cpu.get(host)
    cpu = 0.0 if used is None else (used + cpu_in) / max(1.0, problem.size_cpu[host])
    return round(1000 * max(memory, cpu)) + 1000 * (host in problem.failover)


def value(problem: Problem, moves: Sequence[Move]) -> Value:
    """Of moves from the start."""
    end = placement_after(problem, moves)
    return (*score(end).value[:-1], sum(len(move.vms) for move in moves))


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """An end that satisfies every hard rule that is satisfied at the start and fits on every host."""

    #: VMs that end elsewhere than they start, with their hosts.
    where: Mapping[str, str]
    #: No end is better than this, as far as is proven; it says nothing of the way there.
    bound: Value
    #: Ends that it came by: moves may lead to one of these where none lead to the last.
    earlier: tuple[Mapping[str, str], ...] = ()


class Strategy:
    """One way to choose."""

    #: As the configuration names it.
    name: str
    #: Whether a plan goes on where its first choice has led, until nothing is repaired any more.
    goes_on: bool = True
    #: What its dice were cast with; None where it draws nothing.
    seed: int | None = None
    #: One that plans first, if any does: no plan is worse than the one that it makes alone. Where the problem
    #: is so small that all can be tried, the fewest moves to the best are sought, too.
    simple: Strategy | None = None

    def choose(
        self, problem: Problem, deadline: Deadline, known: StrategyChoice | None = None
    ) -> StrategyChoice:
        """The best end found before the deadline; at worst the start itself. `known` is a simpler choice."""
        raise NotImplementedError

    def repair_directly(self, problem: Problem, deadline: Deadline) -> tuple[Move, ...]:
        """Legal moves, where no way is found to the end that was chosen; none, where that is all it has."""
        return ()
