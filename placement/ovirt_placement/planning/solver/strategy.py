"""The optimal strategy: part by part, then what does not reach its bound together, as long as time lasts."""

from collections import Counter
from collections.abc import Iterator, Mapping

from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.bound import bound
from ovirt_placement.planning.problem.ends import (
    CandidateHosts,
    Strategy,
    StrategyChoice,
    Value,
    crowded,
    score,
)
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.solver.construction import Construction
from ovirt_placement.planning.solver.greedy import Greedy, spread
from ovirt_placement.planning.solver.model import goals_of, reduced, roomiest
from ovirt_placement.planning.solver.stages import solve, value_at

#: A cluster with no more places to choose from is decided as one; of parts with more VMs nothing is decided
#: again.
_MOST_PLACES = 12_000
_MOST_VMS = 150
#: Neighbourhoods grow as long as none of them makes the end better, up to this size. The work that one of
#: size 1 may take grows with the square of the size.
_SIZES = 6
_WORK = 0.2
#: Each of these grows with the size of a neighbourhood: hosts that are cleared for a VM under host affinity,
#: and hosts that are the emptiest; VMs of other parts; bystanders of a host that need as much memory, and the
#: hosts that each of them is offered.
_WANTED_HOSTS = 4
_EMPTY_HOSTS = 2
_OTHERS = 60
_ALIKE = 2
_OFFERED = 6


class Improvement:
    """Makes the end of a construction better, until it reaches the bound or nothing more can be tried."""

    def __init__(self, construction: Construction) -> None:
        self._construction = construction
        self._problem, self._candidates = construction.problem, construction.candidates
        self._placement = construction.placement
        #: No end is better than this.
        self.bound = construction.bound

    @property
    def value(self) -> Value:
        """What the end is worth now."""
        return value_at(self._placement, self._candidates)

    @property
    def where(self) -> Mapping[str, str]:
        """The end: VMs that are elsewhere than at the start, with their hosts."""
        return dict(self._placement.moved)

    def run(self, deadline: Deadline) -> None:
        """Improve the end as it stands."""
        if self.value <= self.bound:
            return
        hosts_of = self._candidates.hosts_of
        places = {vm: hosts_of(vm) for vm in self._problem.memory_mb if len(hosts_of(vm)) > 1}
        if sum(map(len, places.values())) <= _MOST_PLACES:
            self._decide_whole(places, deadline)
            return
        for size in range(1, _SIZES + 1):
            while sum([self._decide_around(seed, size, deadline) for seed in self._seeds()]):
                pass
        self._placement.put(spread(self._problem, self.where, deadline))

    def _decide_whole(self, places: Mapping[str, tuple[str, ...]], deadline: Deadline) -> None:
        # The model knows goals of no part, too: of those that no end repairs VMs may move.
        fixed = self._construction.violated_besides(goals_of(self._problem, places))
        least = tuple(one - other for one, other in zip(self.bound, fixed, strict=True))
        solved = solve(self._placement, self._candidates, places, deadline, workers=2, least=least)
        if solved is not None:
            self._put_if_better(solved.where)
            self.bound = max(self.bound, tuple(map(sum, zip(solved.bound, fixed, strict=True))))

    def _seeds(self) -> list[tuple[str, ...]]:
        """Parts that could be better, those for which bystanders made way, and these bystanders."""
        construction, moved = self._construction, self._placement.moved
        bystanders = sorted(vm for vm in moved if vm not in construction.part_of)
        busy = {self._problem.where[vm] for vm in bystanders}
        if self.value[1] > self.bound[1]:
            busy.update(crowded(self._placement))
        parts = [
            part.vms
            for part, least in construction.bounds.items()
            if len(part.vms) <= _MOST_VMS
            and (construction.value_of(part) > least or any(moved.get(vm) in busy for vm in part.vms))
        ]
        return [*parts, *((vm,) for vm in bystanders)]

    def _decide_around(self, seed: tuple[str, ...], size: int, deadline: Deadline) -> bool:
        """Whether the end has become better by deciding again what is near these VMs."""
        if deadline.over or self.value <= self.bound:
            return False
        domains, work = self._neighbourhood(seed, size), _WORK * size * size
        solved = solve(self._placement, self._candidates, domains, deadline, evenly=False, work=work)
        return solved is not None and self._put_if_better(solved.where)

    def _neighbourhood(self, seed: tuple[str, ...], size: int) -> Mapping[str, tuple[str, ...]]:
        """VMs to be decided, each with its hosts. Of bystanders that are alike a few stand for all."""
        problem, placement, hosts_of = self._problem, self._placement, self._candidates.hosts_of
        order = roomiest(placement)
        hosts = {host for vm in seed for host in (problem.where[vm], placement.where(vm))}
        hosts.update(order[: _EMPTY_HOSTS * size])
        for goal in {goal for vm in seed for goal in problem.goals_of.get(vm, ())}:
            if goal.gathers and (goal.wanted or goal.satisfied):
                hosts.update(problem.where[vm] for vm in goal.vms)
            elif goal.allowed is not None and (goal.wanted or goal.satisfied):
                hosts.update([host for host in order if goal.allows(host)][: _WANTED_HOSTS * size])
        near = (vm for vm, host in sorted(placement.moved.items()) if hosts & {host, problem.where[vm]})
        vms = dict.fromkeys(seed)
        for vm in near:
            its = self._construction.part_of.get(vm, (vm,))
            its = its if len(its) <= _MOST_VMS else (vm,)
            if len(vms) + len(its) <= len(seed) + _OTHERS * size:
                vms.update(dict.fromkeys(its))
        domains = dict(reduced(placement, self._candidates, vms, order, more=size))
        offered = {*order[: _OFFERED * size], *(hosts if size > 1 else ())}
        for vm in self._bystanders(hosts, vms, size):
            own = (problem.where[vm], placement.where(vm))
            domains[vm] = tuple(host for host in hosts_of(vm) if host in offered or host in own)
        return domains

    def _bystanders(self, hosts: set[str], known: Mapping[str, None], size: int) -> Iterator[str]:
        """Other VMs on these hosts that may leave them; first those that no goal is about."""
        problem = self._problem
        for host in sorted(hosts):
            alike: Counter[int] = Counter()
            there = (vm for vm in self._placement.on(host) if vm in problem.memory_mb and vm not in known)
            for vm in sorted(there, key=lambda vm: (vm in problem.goals_of, vm)):
                if alike[problem.memory_mb[vm]] < _ALIKE * size and len(self._candidates.hosts_of(vm)) > 1:
                    alike[problem.memory_mb[vm]] += 1
                    yield vm

    def _put_if_better(self, where: Mapping[str, str]) -> bool:
        """Whether it was better by more than the memory that moves."""
        before, memory_mb = self.value, score(self._placement).memory_mb
        earlier = {vm: self._placement.where(vm) for vm in where}
        self._placement.put(where)
        if (self.value, score(self._placement).memory_mb) > (before, memory_mb):
            self._placement.put(earlier)
        return self.value < before


#: With more places to choose from the greedy strategy goes first; and the share of the time that it gets.
_SMALL = 2_000
_GREEDY_SHARE = 0.3
#: The share of the time in which every part gets its first end.
_FIRST_SHARE = 0.8


class Optimal(Strategy):
    """CP-SAT: exact where its time suffices, and it says so; else the best found, with a bound."""

    name = "optimal"
    simple = Greedy()

    def choose(
        self, problem: Problem, deadline: Deadline, known: StrategyChoice | None = None
    ) -> StrategyChoice:
        candidates = CandidateHosts(problem)
        if sum(len(candidates.hosts_of(vm)) for vm in problem.memory_mb) <= _SMALL:
            known = StrategyChoice({}, bound(problem))  # as fast without, and another would change nothing
        known = known or Greedy().choose(problem, deadline.within(_GREEDY_SHARE))
        # A group that it brings to where none of it is needs more migrations than its score says.
        worth = value_at(ProblemPlacement(problem, known.where), candidates)
        if worth <= known.bound:
            return known
        construction = Construction(problem, candidates, known.where)
        construction.run(deadline.within(_FIRST_SHARE))
        improvement = Improvement(construction)
        improvement.run(deadline)
        least = improvement.bound
        if any(goal.opaque for goal in problem.goals):
            least = bound(problem)  # no model knows what such a rule costs, nor may its VMs move in one
        where = known.where if worth < improvement.value else improvement.where
        return StrategyChoice(where, least)
