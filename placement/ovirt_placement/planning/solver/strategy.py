"""The optimal strategy: part by part, then what does not reach its bound together, as long as time lasts.

Last, an end as good is looked for to which every VM goes straight: with no detour it is the best plan. Hosts
get their VMs one host after another. Where these need room or places of VMs that leave, those leave first,
and so the hosts that they go to come before. That is more than is needed: no end, or one with more
migrations, proves nothing.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from ovirt_placement.planning.detours import direct_moves
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.bound import bound, shortest
from ovirt_placement.planning.problem.ends import (
    MOST_OTHERS,
    CandidateHosts,
    Strategy,
    StrategyChoice,
    Value,
    crowded,
    score,
)
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.solver.construction import Construction
from ovirt_placement.planning.solver.greedy import Greedy
from ovirt_placement.planning.solver.model import Model, ModelScope, Turns, goals_of, reduced, roomiest
from ovirt_placement.planning.solver.spread import spread
from ovirt_placement.planning.solver.stages import Stages, counted, solve, value_at

#: Larger models than this are not built for a straight end: places to choose from.
_MOST_STRAIGHT = 6_000
#: Hosts that are offered beyond those that an end without regard to room can need.
_MORE_HOSTS = 4
#: The share of the time that is left for each choice of VMs.
_SHARE = 0.5


def straight_end(
    placement: ProblemPlacement, candidates: CandidateHosts, deadline: Deadline
) -> Mapping[str, str] | None:
    """One that leaves no more violated than this placement; None if it is such itself, or none is found.

    All VMs are decided again; then, with what time is left, those alone that move or that rules are about.
    """
    problem = placement.problem
    if not _stuck(problem, placement.moved) or any(goal.opaque for goal in problem.goals):
        return None
    able = {vm for vm in problem.memory_mb if len(candidates.hosts_of(vm)) > 1}
    ruled = {vm for vm in able if vm in placement.moved or problem.goals_of.get(vm)}
    for vms in (able, ruled):
        found = _solved_straight(placement, candidates, vms, deadline.within(_SHARE))
        if found is not None and not _stuck(problem, found):
            return found
    return None


def _stuck(problem: Problem, where: Mapping[str, str]) -> bool:
    """Whether no order is seen in which all go to their hosts at once, from where they start."""
    start = ProblemPlacement(problem)
    direct_moves(start, where)
    return start.moved != where


def _solved_straight(
    placement: ProblemPlacement, candidates: CandidateHosts, vms: Collection[str], deadline: Deadline
) -> Mapping[str, str] | None:
    domains = reduced(placement, candidates, vms, roomiest(placement), more=_MORE_HOSTS)
    if deadline.over or sum(map(len, domains.values())) > _MOST_STRAIGHT:
        return None
    model = Model(ModelScope(placement, candidates, domains), deadline)
    if not model.whole:
        return None
    for detour in model.detours:
        model.cp.add(detour == 0)
    Turns(model).limit()
    solved = Stages(model, workers=2, evenly=False).solve(deadline, _value(model), held=True)
    if solved is None:
        return None
    where = {**placement.moved, **solved.where}
    return {vm: host for vm, host in where.items() if host != placement.problem.where[vm]}


def _value(model: Model) -> Value:
    """What the end that the model's placement has is worth, as far as the model decides it."""
    placement = model.scope.placement
    goals = goals_of(model.problem, model.scope.domains)
    violated = (goal for goal in goals if (goal.wanted or goal.satisfied) and placement.violated(goal))
    counts, ended = counted(violated, placement), score(placement)
    counts[1], counts[-1] = ended.headroom_deficit_mb + ended.headroom_deficit_cpu, ended.migrations
    return tuple(counts)


#: Each of these grows with the size of a neighbourhood, from 1:
#: hosts that are cleared for a VM under host affinity, and hosts that are the emptiest;
_WANTED_HOSTS = 4
_EMPTY_HOSTS = 2
#: bystanders of a host that need as much memory, and the hosts that each of them is offered;
_ALIKE = 2
_OFFERED = 6
#: and VMs of other parts.
_OTHERS = 60


class Neighbourhood:
    """Around some VMs, as things stand. Of bystanders that are alike a few stand for all."""

    def __init__(self, construction: Construction, seed: Collection[str], size: int) -> None:
        self._problem = construction.problem
        self._candidates = construction.candidates
        self._placement = construction.placement
        self._size = size
        self._order = roomiest(construction.placement)
        self._hosts = self._around(seed)
        self._vms = {*seed, *self._others(construction, seed)}

    def domains(self) -> Mapping[str, tuple[str, ...]]:
        """The VMs to be decided, each with its hosts."""
        placement, candidates = self._placement, self._candidates
        domains = dict(reduced(placement, candidates, self._vms, self._order, more=self._size))
        offered = set(self._order[: _OFFERED * self._size])
        if self._size > 1:
            offered |= self._hosts
        for vm in (*self._vms.difference(domains), *self._bystanders()):
            own = (self._problem.where[vm], placement.where(vm))
            domains[vm] = tuple(host for host in candidates.hosts_of(vm) if host in offered or host in own)
        return domains

    def _around(self, seed: Collection[str]) -> set[str]:
        """Hosts that these VMs leave or come to, and those on which what is asked of them would hold."""
        where = self._problem.where
        hosts = {where[vm] for vm in seed} | {self._placement.where(vm) for vm in seed}
        hosts |= set(self._order[: _EMPTY_HOSTS * self._size])
        for goal in {goal for vm in seed for goal in self._problem.goals_of.get(vm, ())}:
            hosts |= self._wanted(goal, seed) if goal.wanted or goal.satisfied else set()
        return hosts

    def _wanted(self, goal: Goal, seed: Collection[str]) -> set[str]:
        if goal.gathers:
            return {self._problem.where[vm] for vm in goal.vms}
        if goal.allowed is None:
            return set()
        members = [vm for vm in goal.vms if vm in seed]
        ends = {host for vm in members for host in self._candidates.hosts_of(vm) if goal.right(host)}
        return set([host for host in self._order if host in ends][: _WANTED_HOSTS * self._size])

    def _others(self, construction: Construction, seed: Collection[str]) -> Iterator[str]:
        """VMs that moved from or to these hosts, with those that goals tie to them."""
        near = [
            vm
            for vm, host in sorted(self._placement.moved.items())
            if vm not in seed and (host in self._hosts or self._problem.where[vm] in self._hosts)
        ]
        left = _OTHERS * self._size
        for vms in dict.fromkeys(_tied_to(construction, vm) for vm in near):
            if len(vms) <= left:
                left -= len(vms)
                yield from vms

    def _bystanders(self) -> Iterator[str]:
        """VMs on these hosts that may leave them; first those that no goal is about."""
        problem, placement = self._problem, self._placement
        for host in sorted(self._hosts):
            able = [
                vm
                for vm in placement.on(host)
                if vm not in self._vms and vm in problem.memory_mb and len(self._candidates.hosts_of(vm)) > 1
            ]
            seen: Counter[int] = Counter()
            for vm in sorted(able, key=lambda vm: (bool(problem.goals_of.get(vm)), vm)):
                seen[problem.memory_mb[vm]] += 1
                if seen[problem.memory_mb[vm]] <= _ALIKE * self._size:
                    yield vm


#: A cluster with no more places to choose from is decided as one.
_MOST_PLACES = 12_000
#: Neighbourhoods grow as long as none of them makes the end better, up to this size.
_SIZES = 6
#: The work that a neighbourhood of size 1 may take; it grows with the square of the size.
_WORK = 0.2
#: Parts with more VMs are left as they are.
_MOST_VMS = 150


def _tied_to(construction: Construction, vm: str) -> tuple[str, ...]:
    """The VMs of its part, unless these are too many to be decided with it."""
    vms = construction.part_of.get(vm, (vm,))
    return vms if len(vms) <= _MOST_VMS else (vm,)


class Improvement:
    """Makes the end of a construction better, until it reaches the bound or nothing more can be tried."""

    def __init__(self, construction: Construction) -> None:
        self._construction = construction
        self._placement = construction.placement
        #: No end is better than this.
        self.bound = construction.bound
        self._places = None if self.value <= self.bound else self._decided_whole()
        self._size = 1

    @property
    def value(self) -> Value:
        """What the end is worth now."""
        return value_at(self._placement, self._construction.candidates)

    @property
    def where(self) -> Mapping[str, str]:
        """The end: VMs that are elsewhere than at the start, with their hosts."""
        return dict(self._placement.moved)

    def run(self, deadline: Deadline) -> None:
        """Improve the end as it stands; what was begun goes on where a deadline ended it."""
        if self.value <= self.bound:
            return
        if self._places is not None:
            self._whole(self._places, deadline)
            return
        while self._size <= _SIZES and self.value > self.bound and not deadline.over:
            if not self._sweep(deadline) and not deadline.over:
                self._size += 1
        self._placement.put(spread(self._construction.problem, self.where, deadline))

    def run_from(self, where: Mapping[str, str], deadline: Deadline) -> Mapping[str, str]:
        """The same from another end."""
        placement, homes = self._placement, self._construction.problem.where
        if where != placement.moved:
            placement.put({vm: homes[vm] for vm in placement.moved.keys() - where.keys()})
            placement.put(where)
            self._size = 1
        self.run(deadline)
        return self.where

    def _decided_whole(self) -> Mapping[str, tuple[str, ...]] | None:
        """All VMs that may move, with their hosts; None if these are too many to be decided as one."""
        candidates = self._construction.candidates
        places = {
            vm: hosts
            for vm in self._construction.problem.memory_mb
            if len(hosts := candidates.hosts_of(vm)) > 1
        }
        return places if sum(map(len, places.values())) <= _MOST_PLACES else None

    def _whole(self, places: Mapping[str, tuple[str, ...]], deadline: Deadline) -> None:
        construction = self._construction
        fixed = construction.untouched
        least = tuple(one - other for one, other in zip(self.bound, fixed, strict=True))
        before = self._merit
        solved = solve(self._placement, construction.candidates, places, deadline, workers=2, least=least)
        if solved is None:
            return
        self._put_if_better(solved.where, before)
        self.bound = max(self.bound, tuple(map(sum, zip(solved.bound, fixed, strict=True))))

    def _sweep(self, deadline: Deadline) -> bool:
        """Whether any neighbourhood made the end better."""
        better = False
        for seed in self._seeds():
            if deadline.over or self.value <= self.bound:
                break
            better = self._decide(seed, self._size, deadline) or better
        return better

    def _seeds(self) -> list[tuple[str, ...]]:
        """Parts that could be better, those for which bystanders made way, and these bystanders."""
        construction, placement = self._construction, self._placement
        bystanders = sorted(vm for vm in placement.moved if vm not in construction.part_of)
        busy = {construction.problem.where[vm] for vm in bystanders}
        if self.value[1] > self.bound[1]:
            busy.update(crowded(placement))
        parts = [
            part.vms
            for part, least in construction.bounds.items()
            if len(part.vms) <= _MOST_VMS
            and (
                construction.value_of(part) > least or any(placement.moved.get(vm) in busy for vm in part.vms)
            )
        ]
        # A part that is too large is decided again around each VM of it that moved for a sum; a crowd that
        # cannot be dispersed would be looked at VM by VM, and none of its ends is known to be the best.
        goals = construction.problem.goals_of
        large = {
            vm
            for vm in placement.moved
            if len(construction.part_of.get(vm, ())) > _MOST_VMS
            and any(goal.sum is not None for goal in goals.get(vm, ()))
        }
        return [*parts, *((vm,) for vm in (*bystanders, *sorted(large)))]

    def _decide(self, seed: tuple[str, ...], size: int, deadline: Deadline) -> bool:
        construction, placement = self._construction, self._placement
        domains = Neighbourhood(construction, seed, size).domains()
        before = self._merit
        work = _WORK * size * size
        solved = solve(placement, construction.candidates, domains, deadline, evenly=False, work=work)
        return solved is not None and self._put_if_better(solved.where, before)

    @property
    def _merit(self) -> tuple[Value, int]:
        return self.value, score(self._placement).memory_mb

    def _put_if_better(self, where: Mapping[str, str], before: tuple[Value, int]) -> bool:
        """Whether it was better by more than the memory that moves."""
        earlier = {vm: self._placement.where(vm) for vm in where}
        self._placement.put(where)
        if self._merit > before:
            self._placement.put(earlier)
        return self.value < before[0]


#: With more places to choose from the greedy strategy goes first; and the share of the time that it gets.
_SMALL = 2_000
_GREEDY_SHARE = 0.3
#: The share of the time in which every part gets its first end.
_FIRST_SHARE = 0.8
#: The share of the time for the best end; the rest is for another one, if VMs do not go straight there.
_BEST_SHARE = 0.75


class Optimal(Strategy):
    """CP-SAT: exact where its time suffices, and it says so; else the best found, with a bound."""

    name = "optimal"
    simple = Greedy()
    shortest = staticmethod(shortest)

    def choose(
        self, problem: Problem, deadline: Deadline, known: StrategyChoice | None = None
    ) -> StrategyChoice:
        candidates = CandidateHosts(problem)
        choice = self._best(problem, candidates, deadline.within(_BEST_SHARE), known)
        if choice is known:
            return choice
        straight = straight_end(ProblemPlacement(problem, choice.where), candidates, deadline)
        if straight is None:
            return choice
        return replace(choice, where=straight, others=(choice.where, *choice.others)[:MOST_OTHERS])

    def _best(
        self, problem: Problem, candidates: CandidateHosts, deadline: Deadline, known: StrategyChoice | None
    ) -> StrategyChoice:
        if sum(len(candidates.hosts_of(vm)) for vm in problem.memory_mb) <= _SMALL:
            known = None  # as fast without, and another known end would change nothing
        else:
            known = known or Greedy().choose(problem, deadline.within(_GREEDY_SHARE))
        # A group that it brings to where none of it is needs more migrations than its score says.
        worth = () if known is None else value_at(ProblemPlacement(problem, known.where), candidates)
        if known is not None and worth <= known.bound:
            return known
        construction = Construction(problem, candidates, {} if known is None else known.where)
        construction.run(deadline.within(_FIRST_SHARE))
        improvement = Improvement(construction)
        improvement.run(deadline)
        where = improvement.where
        reached = score(construction.placement)
        least = improvement.bound
        if any(goal.opaque for goal in problem.goals):
            least = bound(problem)  # no model knows what such a rule costs, nor may its VMs move in one
        others = [construction.in_any_order] if construction.in_any_order else []
        if known is not None and worth < improvement.value:
            where, reached, others = known.where, known.score, [where, *known.others]
        elif known is not None:
            others += [known.where, *known.others]
        return StrategyChoice(where, reached, least, tuple(others[:MOST_OTHERS]), improvement.run_from)
