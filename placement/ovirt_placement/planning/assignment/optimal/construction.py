"""The first end: one part after another takes the best that the room left by those before it allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ovirt_placement.planning.assignment.optimal.domains import reduced, roomiest
from ovirt_placement.planning.assignment.optimal.ends import (
    Value,
    counted,
    length_of_value,
    put,
    solve,
    total,
    value_of,
)
from ovirt_placement.planning.assignment.optimal.parts import Part, offenders, parts_of
from ovirt_placement.planning.assignment.optimal.stages import NO_HINT, Solved
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.lower_bound import independent
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.gathering import unreached_groups
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Problem


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


#: A part with more places than this to choose from is repaired by its offenders alone.
_MOST_PLACES = 6_000
#: And with more places even so, each VM is offered fewer.
_MOST_OFFERED = 30_000
#: With so many the known end is taken as it is.
_TOO_MANY = 60_000
#: No part takes more than this share of the time that is left, unless there are few.
_PART_SHARE = 0.25


@dataclass
class Built:
    """A part with the value of its end, and what it could reach at best if there were room everywhere."""

    part: Part
    value: Value
    bound: Value

    @property
    def perfect(self) -> bool:
        return self.value <= self.bound


class Construction:
    """An end that grows part by part."""

    def __init__(
        self, problem: Problem, candidates: CandidateHosts, hint: Mapping[str, str] = NO_HINT
    ) -> None:
        """`hint` is an end that is known: VMs that are elsewhere than at the start, with their hosts."""
        self.problem = problem
        self._hint = hint
        self.candidates = candidates
        self.placement = ProblemPlacement(problem)
        self.built: list[Built] = []
        #: Of each VM of a part all VMs of the part.
        self.part_of: dict[str, tuple[str, ...]] = {}
        self._start = ProblemPlacement(problem)
        self.untouched = self._untouchable()

    def run(self, deadline: Deadline) -> None:
        parts = parts_of(self.problem, self.candidates)
        share = max(_PART_SHARE, 1.0 / max(1, len(parts)))
        for part in parts:
            if deadline.over:
                self.built.append(Built(part, self.value_of(part), self._perfect(part)))
            else:
                self.built.append(self._build(part, deadline.within(share)))
            self.part_of |= dict.fromkeys(part.vms, part.vms)
        parted = {goal.number for built in self.built for goal in built.part.goals}
        self.untouched = self._untouchable(parted)

    @property
    def bound(self) -> Value:
        """No end is better than this."""
        return total([self.untouched, *(built.bound for built in self.built)], self.problem)

    def value_of(self, part: Part) -> Value:
        """What a part is worth as things stand, but for what it takes of headroom."""
        sought = (goal for goal in part.goals if goal.wanted or goal.satisfied)
        ended = {vm: self.placement.where(vm) for vm in part.vms}
        unreached = unreached_groups(self.problem, self.candidates, ended)
        violated = (goal for goal in sought if self.placement.violated(goal) or goal in unreached)
        counts = counted(violated, self.placement)
        counts[-1] = sum(vm in self.placement.moved for vm in part.vms)
        return tuple(counts)

    def _untouchable(self, parted: frozenset[int] | set[int] = frozenset()) -> Value:
        """What is violated where nobody can move, as far as a model knows."""
        violated = (
            goal
            for goal in self._start.violated_goals()
            if goal.wanted and goal.form is not None and goal.number not in parted
        )
        return tuple(counted(violated, self._start))

    def _build(self, part: Part, deadline: Deadline) -> Built:
        simple = gathered(part, self.placement, self.candidates)
        if simple is not None:
            put(self.placement, simple)
            best = (*(0 for _ in range(length_of_value(self.problem) - 1)), len(simple))
            return Built(part, best, best)
        hosts = roomiest(self.placement)
        domains = reduced(self.placement, self.candidates, part.vms, hosts)
        narrow = sum(map(len, domains.values())) > _MOST_PLACES
        if narrow:
            moving = offenders(part, self.problem).union(self._hint.keys() & part.vms)
            domains = reduced(self.placement, self.candidates, moving, hosts)
            simple = gathered(part, self.placement, self.candidates, headroom=False)
            if simple is None and sum(map(len, domains.values())) > _TOO_MANY:
                simple = {vm: self._hint[vm] for vm in part.vms if vm in self._hint}
                domains = {}
            domains = self._offered(domains, hosts)
        # Of VMs and hosts that are alike the solver finds no such bound by itself, as of an even spread.
        least = self._perfect(part)
        solved = None
        if not simple:
            solved = solve(
                self.placement,
                self.candidates,
                domains,
                deadline,
                least=least,
                hint=self._hint,
                evenly=not narrow,
                workers=2 if narrow else 1,
            )
        if solved is not None or simple is not None:
            put(self.placement, solved.where if solved is not None else simple or {})
        value = self._value(part, solved)
        if value <= least or narrow:
            return Built(part, value, least)
        return Built(part, value, max(least, self._bound(part, deadline)))

    def _offered(
        self, domains: Mapping[str, tuple[str, ...]], order: Sequence[str]
    ) -> Mapping[str, tuple[str, ...]]:
        """With the hosts of the hint; where hosts are too many, only these, and the roomiest."""
        few = sum(map(len, domains.values())) > _MOST_OFFERED
        roomy = frozenset(order[: max(1, _MOST_OFFERED // len(domains))] if few else order)
        start, hint = self.problem.where, self._hint
        return {
            vm: tuple(dict.fromkeys((*(one for one in its if one in roomy or one == start[vm]), *known)))
            for vm, its in domains.items()
            for known in [(hint[vm],) if vm in hint else ()]
        }

    def _perfect(self, part: Part) -> Value:
        """What no end of a part is better than: nothing violated, with the fewest migrations that take."""
        nothing = (0,) * (length_of_value(self.problem) - 1)
        return (*nothing, sum(goal.surplus for goal in independent(self.problem, part.violated)))

    def _bound(self, part: Part, deadline: Deadline) -> Value:
        """What the part could reach if there were room for it everywhere."""
        domains = reduced(self._start, self.candidates, part.vms, self.problem.hosts)
        solved = solve(self._start, self.candidates, domains, deadline, room=False, evenly=False)
        return () if solved is None else solved.bounds[: length_of_value(self.problem)]

    def _value(self, part: Part, solved: Solved | None) -> Value:
        value = self.value_of(part)
        if solved is None:
            return value
        # With headroom and detours, as the model counts them.
        return (value[0], solved.values[1], *value[2:-1], value_of(solved, self.problem)[-1])
