"""One choice as a model for CP-SAT: which VM ends where, which goals are then violated, what it costs."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ovirt_placement.planning.plan import NEVER, Deadline
from ovirt_placement.planning.problem.ends import CandidateHosts, detour, is_fresh, places
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.solver.forms import (
    Members,
    Term,
    cp_model,
    excess,
    limit_sum,
    loads,
    loads_above,
    restrict,
)
from ovirt_placement.rules.elements.rule import Allowed, AtLeast, AtMost, Even, OfAll, OnePlace, Sum


@dataclass(frozen=True)
class ModelScope:
    """What a model decides: where these VMs end. All others are where the placement has them."""

    placement: ProblemPlacement
    candidates: CandidateHosts
    #: The hosts on which each VM may end; that on which it starts and that on which it is now are among them.
    domains: Mapping[str, tuple[str, ...]]
    #: Whether the room on hosts counts; without it, the best is a bound.
    room: bool = True
    #: The goals that count; None where all goals of these VMs do. Of some, the best is a bound.
    goals: Sequence[Goal] | None = None


class Model:
    """The variables of a scope, and its goals as constraints over them."""

    def __init__(self, scope: ModelScope, deadline: Deadline = NEVER) -> None:
        """Of a large scope it takes seconds: once the deadline is over it is left as it is, of no use."""
        self.scope = scope
        #: Whether it was built before the deadline.
        self.whole = False
        self.problem: Problem = scope.placement.problem
        self.cp = cp_model.CpModel()
        self.at: dict[tuple[str, str], cp_model.IntVar] = {}
        self.on: defaultdict[str, list[str]] = defaultdict(list)
        for vm in sorted(scope.domains):
            if deadline.over:
                return
            hosts = scope.domains[vm]
            for host in hosts:
                self.at[vm, host] = self.cp.new_bool_var("")
                self.on[host].append(vm)
            self.cp.add_exactly_one(self.at[vm, host] for host in hosts)
        #: By level, what says how many goals that count are violated, with the most it can be.
        self.violated: defaultdict[int, list[Term]] = defaultdict(list)
        #: What says how much is violated of goals that are better the less they are, and the most it can be.
        self.excess: list[Term] = []
        self.most_excess = 0
        #: Migrations that gathering on a host with no member costs beyond one for each VM.
        self.detours: list[Term] = []
        self.most_detours = 0
        for goal in goals_of(self.problem, scope.domains) if scope.goals is None else scope.goals:
            if deadline.over:
                return
            if self._decides(goal):
                self._add(goal)
            else:
                self._add_undecided(goal)
        self.whole = True

    @property
    def moved(self) -> dict[str, Term]:
        """For each VM, 1 if it ends elsewhere than it starts."""
        return {vm: 1 - self.at[vm, self.problem.where[vm]] for vm in self.scope.domains}

    def _decides(self, goal: Goal) -> bool:
        """Whether where these VMs end decides it: not a sum on hosts that none leaves or comes to."""
        if goal.sum is not None:
            return not goal.sum.hosts.isdisjoint(self.on)
        return not self.scope.domains.keys().isdisjoint(goal.vms)

    def _add_undecided(self, goal: Goal) -> None:
        """What stays as it is."""
        placement = self.scope.placement
        if (goal.wanted or goal.satisfied) and placement.violated(goal):
            self.violated[goal.level].append(1)
            if goal.partly:
                self.excess.append(placement.excess_of(goal))
                self.most_excess += placement.excess_of(goal)

    def _add(self, goal: Goal) -> None:
        if goal.split:
            self._stay_or_meet(goal)
        counts = goal.wanted or goal.satisfied
        if not counts:
            return
        violated: Term = 0
        if not (goal.binding and goal.satisfied):
            violated = self.cp.new_bool_var("")
            self.violated[goal.level].append(violated)
        if goal.limit is not None:
            self._limit(goal, goal.limit, violated)
        elif goal.gathers:
            self._gather(goal, violated)
        elif goal.sum is not None:
            self._limit_sum(goal, goal.sum, violated)
        elif isinstance(goal.form, OfAll):
            members = self._members(goal)
            restrict(members, goal.form, violated)
            if goal.partly:
                self._count([(excess(members, goal.form), len(goal.vms))])
        else:
            self._keep_to_hosts(goal, violated)

    def _limit_sum(self, goal: Goal, total: Sum, violated: Term) -> None:
        """What is there now is known: only what the model decides counts one by one."""
        placement = self.scope.placement
        free = {vm: hosts for vm, hosts in self.scope.domains.items() if self.problem.in_goal(vm, goal)}
        leaving = sum(total.amounts[vm] for vm in free if placement.where(vm) in total.hosts)
        staying, members = placement.in_sum(goal) - leaving, Members(self.cp, self.at, free)
        above, more = limit_sum(members, total, violated, staying)
        if more > 0 and goal.partly:
            self._count([(above, more)])

    def _fixed(self, goal: Goal) -> Counter[str]:
        """Where members are of whom nothing is decided."""
        where = self.scope.placement.where
        return Counter(where(vm) for vm in goal.vms if vm not in self.scope.domains)

    def _limit(self, goal: Goal, limit: AtMost, violated: Term) -> None:
        """No more than the limit on any place, or the goal is violated."""
        members = self._members(goal)
        full: list[str] = []
        for place, load in loads(members, limit).items():
            more = len(load) - limit.most
            if more <= 0:
                continue
            full.append(place)
            self.cp.add(sum(load) <= limit.most + more * violated)
            if goal.binding and not goal.satisfied and not goal.lenient:
                self._exclude(limit, place, load, members)
        if goal.partly and goal.by_pairs:
            self._count_pairs(goal, self._fixed(goal))
        elif goal.lenient and (goal.binding or goal.partly):
            above = [(load, len(goal.vms)) for load in loads_above(members, limit, full)]
            if goal.binding and above:
                self.cp.add(sum(load for load, _ in above) <= goal.surplus)
            if goal.partly:
                self._count(above)

    def _count(self, above: Iterable[tuple[Term, int]]) -> None:
        """What is above limits is to be small, as far as it is above 0; each with the most it can be."""
        for load, most in above:
            self.excess.append(self.cp.new_int_var(0, most, ""))
            self.cp.add(self.excess[-1] >= load)
            self.most_excess += most

    def _members(self, goal: Goal) -> Members:
        where = self.scope.placement.where
        domains = {vm: self.scope.domains[vm] for vm in goal.vms if vm in self.scope.domains}
        fixed = [(vm, where(vm)) for vm in goal.vms if vm not in domains]
        return Members(self.cp, self.at, domains, fixed)

    def _exclude(self, limit: AtMost, place: str, load: Collection[Term], members: Members) -> None:
        """No filter lets a VM come to a place that is full, even if the rule remains violated elsewhere."""
        coming = [
            self.at[vm, host]
            for vm, host in members.options()
            if limit.place(host) == place and host != self.problem.where[vm]
        ]
        if coming:
            comes = self.cp.new_bool_var("")
            for one in coming:
                self.cp.add_implication(one, comes)
            self.cp.add(sum(load) <= limit.most).only_enforce_if(comes)

    def _count_pairs(self, goal: Goal, fixed: Counter[str]) -> None:
        """Where the engine judges, who comes to a host is alone there: only those that stay share one."""
        staying: defaultdict[str, list[Term]] = defaultdict(list)
        for vm in goal.vms:
            if vm in self.scope.domains:
                for home in self.scope.domains[vm] if goal.lenient else (self.problem.where[vm],):
                    staying[home].append(self.at[vm, home])
        for host in sorted({*fixed, *staying}):
            there, more = fixed[host], staying[host]
            self.excess.append(there * (there - 1) // 2)
            # One after the other: the first is alone, the second makes a pair, the third two more ...
            nth = [self.cp.new_bool_var("") for _ in more]
            self.cp.add(sum(nth) == sum(more))
            self.excess += [number * one for number, one in enumerate(nth, there)]
            self.most_excess += (there + len(more)) * (there + len(more) - 1) // 2

    def _stay_or_meet(self, goal: Goal) -> None:
        """Members of a split group come only to where some of it are; elsewhere only whole, once they met."""
        known = places(self.problem, goal.vms) | self._fixed(goal).keys()
        for host, coming in sorted(self._members(goal).grouped(lambda vm, host: host).items()):
            if host in known:
                continue
            whole = len(coming) == len(goal.vms)
            for one in coming:
                self.cp.add(one == (coming[0] if whole else 0))

    def _gather(self, goal: Goal, violated: Term) -> None:
        fixed = self._fixed(goal)
        free = [vm for vm in goal.vms if vm in self.scope.domains]
        common = set(self.scope.domains[free[0]]).intersection(*(self.scope.domains[vm] for vm in free[1:]))
        if fixed:
            common = common & set(fixed) if len(fixed) == 1 else set()
        chosen: list[Term] = []
        for host in sorted(common):
            gathers = self.cp.new_bool_var("")
            chosen.append(gathers)
            for vm in free:
                self.cp.add_implication(gathers, self.at[vm, host])
            if is_fresh(self.scope.candidates, goal, host):
                more = detour(self.problem, self.scope.candidates, goal, host)
                if more is None:
                    self.cp.add(gathers == 0)
                else:
                    self.detours.append(more * gathers)
                    self.most_detours += more
        self.cp.add(sum(chosen) == 1 - violated)

    def _keep_to_hosts(self, goal: Goal, violated: Term) -> None:
        free = [vm for vm in goal.vms if vm in self.scope.domains]
        allows = {
            vm: sum(self.at[vm, host] for host in self.scope.domains[vm] if goal.allows(host)) for vm in free
        }
        wrong = sum(members for host, members in self._fixed(goal).items() if not goal.allows(host))
        if goal.partly:
            self._count([(wrong + len(free) - sum(allows.values()), len(goal.vms))])
        if wrong:
            self.cp.add(violated == 1)
            return
        for there in allows.values():
            self.cp.add(there + violated >= 1)


def goals_of(problem: Problem, vms: Iterable[str]) -> list[Goal]:
    """The goals of any of these VMs, each once, in an order that does not depend on the engine's."""
    found = {goal.number: goal for vm in vms for goal in problem.goals_of.get(vm, ())}
    goals = [goal for goal in found.values() if goal.form is not None]
    return sorted(
        goals, key=lambda goal: (goal.level, goal.constraint.asks, goal.constraint.groups, goal.vms)
    )


def reduced(
    placement: ProblemPlacement,
    candidates: CandidateHosts,
    vms: Collection[str],
    order: Sequence[str],
    more: int = 0,
) -> Mapping[str, tuple[str, ...]]:
    """The hosts that each of these VMs is offered: all that differ, and enough of those that are alike.

    Of hosts that are alike the first in `order` are kept. Without regard to room nothing is lost by it.
    """
    problem = placement.problem
    moving = sorted(vm for vm in vms if len(candidates.hosts_of(vm)) > 1)
    kept = _one_of_each_kind(placement, candidates, moving, order, more)
    return {
        vm: tuple(
            host
            for host in candidates.hosts_of(vm)
            if host in kept or host in (problem.where[vm], placement.where(vm))
        )
        for vm in moving
    }


def _one_of_each_kind(
    placement: ProblemPlacement,
    candidates: CandidateHosts,
    moving: Collection[str],
    order: Sequence[str],
    more: int,
) -> frozenset[str]:
    """Enough hosts of each kind."""
    problem = placement.problem
    goals = goals_of(problem, moving)
    needed = _needed(goals, moving) + more
    marks = _marks(placement, goals, moving)
    reaches = list(
        {id(one): one for one in map(frozenset, {candidates.hosts_of(vm)[1:] for vm in moving})}.values()
    )
    alike: defaultdict[object, list[str]] = defaultdict(list)
    for host in order:
        reached = tuple(host in one for one in reaches)
        alike[marks.get(host), reached, tuple(_traits(goals, host))].append(host)
    return frozenset(host for hosts in alike.values() for host in hosts[:needed])


def _needed(goals: Collection[Goal], moving: Collection[str]) -> int:
    """Hosts of one kind that an end can need: a VM that nothing but peers draw needs none of its own."""
    gathers = sum(goal.gathers for goal in goals)
    driven = {vm for goal in goals if not goal.gathers for vm in goal.vms}
    return max(1, min(len(moving), len(driven.intersection(moving)) + gathers))


def _marks(
    placement: ProblemPlacement, goals: Collection[Goal], moving: Collection[str]
) -> Mapping[str, object]:
    """What distinguishes a host: which movable VMs are there, and how many of each goal stay."""
    problem = placement.problem
    free = set(moving)
    starting: defaultdict[str, list[object]] = defaultdict(list)
    for vm in moving:
        starting[problem.where[vm]].append(vm)
    for goal in goals:
        staying: defaultdict[str, list[str]] = defaultdict(list)
        for vm in goal.vms if goal.sum is None else ():
            if vm not in free:
                staying[placement.where(vm)].append(vm)
        for host, vms in staying.items():
            starting[host].append((goal.number, _share(goal, vms)))
    return {host: tuple(marks) for host, marks in starting.items()}


def _share(goal: Goal, vms: Collection[str]) -> object:
    """All that counts of members that stay on a host."""
    if goal.limit is None:
        return min(len(vms), 2)
    return frozenset(goal.limit.sets(vms)) if goal.limit.set_of else min(len(vms), goal.limit.most + 1)


def _traits(goals: Collection[Goal], host: str) -> Iterator[object]:
    """What goals say of a host by itself: whether it is listed, and the failure domain that they count by."""
    for goal in goals:
        form = goal.form
        if isinstance(form, Allowed):
            yield form.allows(host)
        elif isinstance(form, Sum):
            yield host in form.hosts
        elif isinstance(form, AtMost) and form.place_of:
            yield form.place(host)
        elif isinstance(form, OnePlace | Even | AtLeast):
            yield form.place_of.get(host)


def roomiest(placement: ProblemPlacement) -> list[str]:
    """Hosts that may take VMs, the emptiest first; those that are kept for failover are the last."""
    problem = placement.problem
    place = {host: number for number, host in enumerate(problem.hosts)}

    def rank(host: str) -> tuple[bool, float, int]:
        free = placement.free_mb(host) / max(1, problem.size_mb[host])
        return host in problem.failover, -round(free, 3), place[host]

    return sorted(problem.hosts, key=rank)
