"""One choice as a model for CP-SAT: which VM ends where, which goals are then violated, what it costs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ovirt_placement.planning.cp_sat import cp_model
from ovirt_placement.planning.encode.cp import Term, loads
from ovirt_placement.planning.encode.cp_of_all import restrict
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.gathering import detour, is_fresh
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.rules.forms import AtMost, OfAll


@dataclass(frozen=True)
class ModelScope:
    """What a model decides: where these VMs end. All others are where the placement has them."""

    placement: ProblemPlacement
    candidates: CandidateHosts
    #: The hosts on which each VM may end; that on which it starts and that on which it is now are among them.
    domains: Mapping[str, tuple[str, ...]]
    #: Whether the room on hosts counts; without it, the best is a bound.
    room: bool = True


class Model:
    """The variables of a scope, and its goals as constraints over them."""

    def __init__(self, scope: ModelScope) -> None:
        self.scope = scope
        self.problem: Problem = scope.placement.problem
        self.cp = cp_model.CpModel()
        self.at: dict[tuple[str, str], cp_model.IntVar] = {}
        self.on: defaultdict[str, list[str]] = defaultdict(list)
        for vm in sorted(scope.domains):
            hosts = scope.domains[vm]
            for host in hosts:
                self.at[vm, host] = self.cp.new_bool_var("")
                self.on[host].append(vm)
            self.cp.add_exactly_one(self.at[vm, host] for host in hosts)
        #: By level, what says how many goals that count are violated, with the most it can be.
        self.violated: defaultdict[int, list[Term]] = defaultdict(list)
        #: What says how many pairs of VMs share a host that are to be spread as far as they can be.
        self.pairs: list[Term] = []
        self.most_pairs = 0
        #: Migrations that gathering on a host with no member costs beyond one for each VM.
        self.detours: list[Term] = []
        self.most_detours = 0
        for goal in goals_of(self.problem, scope.domains):
            self._add(goal)

    @property
    def moved(self) -> dict[str, Term]:
        """For each VM, 1 if it ends elsewhere than it starts."""
        return {vm: 1 - self.at[vm, self.problem.where[vm]] for vm in self.scope.domains}

    def _add(self, goal: Goal) -> None:
        counts = goal.wanted or goal.satisfied
        if not counts:
            return
        violated: Term = 0
        if not (goal.hard and goal.satisfied):
            violated = self.cp.new_bool_var("")
            self.violated[goal.level].append(violated)
        if goal.limit is not None:
            self._limit(goal, goal.limit, violated)
        elif goal.gathers:
            self._gather(goal, violated)
        elif isinstance(goal.form, OfAll):
            domains, fixed = self._divided(goal)
            restrict(self.cp, goal.form, self.at, domains, fixed, violated)
        else:
            self._keep_to_hosts(goal, violated)

    def _fixed(self, goal: Goal) -> Counter[str]:
        """Where members are of whom nothing is decided."""
        where = self.scope.placement.where
        return Counter(where(vm) for vm in goal.vms if vm not in self.scope.domains)

    def _limit(self, goal: Goal, limit: AtMost, violated: Term) -> None:
        """No more than the limit on any place, or the goal is violated."""
        domains, fixed = self._divided(goal)
        excess: list[Term] = []
        for place, load in loads(self.cp, limit, self.at, domains, fixed).items():
            more = len(load) - limit.most
            if more <= 0:
                continue
            self.cp.add(sum(load) <= limit.most + more * violated)
            if goal.binding and goal.lenient:
                excess.append(self.cp.new_int_var(0, more, ""))
                self.cp.add(excess[-1] >= sum(load) - limit.most)
            elif goal.binding and not goal.satisfied:
                self._exclude(limit, place, load, domains)
        if excess and not limit.set_of:
            self.cp.add(sum(excess) <= goal.surplus)
        if goal.partly:
            self._count_pairs(goal, self._fixed(goal))

    def _divided(self, goal: Goal) -> tuple[dict[str, tuple[str, ...]], list[tuple[str, str]]]:
        """The members of which it is decided where they end, and where the others are."""
        where = self.scope.placement.where
        domains = {vm: self.scope.domains[vm] for vm in goal.vms if vm in self.scope.domains}
        return domains, [(vm, where(vm)) for vm in goal.vms if vm not in domains]

    def _exclude(
        self, limit: AtMost, place: str, load: Collection[Term], domains: Mapping[str, tuple[str, ...]]
    ) -> None:
        """No filter lets a VM come to a place that is full, even if the rule remains violated elsewhere."""
        coming = [
            self.at[vm, host]
            for vm, hosts in domains.items()
            for host in hosts
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
            self.pairs.append(there * (there - 1) // 2)
            # One after the other: the first is alone, the second makes a pair, the third two more ...
            nth = [self.cp.new_bool_var("") for _ in more]
            self.cp.add(sum(nth) == sum(more))
            self.pairs += [number * one for number, one in enumerate(nth, there)]
            self.most_pairs += (there + len(more)) * (there + len(more) - 1) // 2

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
        for host in self._fixed(goal):
            if not goal.right(host):
                self.cp.add(violated == 1)
                return
        for vm in goal.vms:
            if vm in self.scope.domains:
                right = [self.at[vm, host] for host in self.scope.domains[vm] if goal.right(host)]
                self.cp.add(sum(right) + violated >= 1)


def goals_of(problem: Problem, vms: Iterable[str]) -> list[Goal]:
    """The goals of any of these VMs, each once, in an order that does not depend on the engine's."""
    found = {goal.number: goal for vm in vms for goal in problem.goals_of.get(vm, ())}
    goals = [goal for goal in found.values() if goal.form is not None]
    return sorted(
        goals, key=lambda goal: (goal.level, goal.constraint.asks, goal.constraint.groups, goal.vms)
    )
