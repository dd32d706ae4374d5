"""One choice as a model for CP-SAT: which VM ends where, which goals are then broken, what it costs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ortools.sat.python import cp_model

from ovirt_placement.planning.problem.gathering import detour, is_fresh
from ovirt_placement.planning.problem.goal import Goal, Shape
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.problem.reach import Reach
from ovirt_placement.planning.problem.standing import Standing

#: A term of a sum: a variable, something made of variables, or a number.
Term = cp_model.LinearExpr | int


@dataclass(frozen=True)
class Scope:
    """What a model decides: where these VMs end. All others are where the standing has them."""

    standing: Standing
    reach: Reach
    #: The hosts on which each VM may end; that on which it starts and that on which it is now are among them.
    domains: Mapping[str, tuple[str, ...]]
    #: Whether the room on hosts counts; without it, the best is a bound.
    room: bool = True


class Model:
    """The variables of a scope, and its goals as constraints over them."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.problem: Problem = scope.standing.problem
        self.cp = cp_model.CpModel()
        self.at: dict[tuple[str, str], cp_model.IntVar] = {}
        self.on: defaultdict[str, list[str]] = defaultdict(list)
        for vm in sorted(scope.domains):
            hosts = scope.domains[vm]
            for host in hosts:
                self.at[vm, host] = self.cp.new_bool_var("")
                self.on[host].append(vm)
            self.cp.add_exactly_one(self.at[vm, host] for host in hosts)
        #: By level, what says how many goals that count are broken, with the most it can be.
        self.broken: defaultdict[int, list[Term]] = defaultdict(list)
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
        counts = goal.wanted or goal.held
        if not counts:
            return
        broken: Term = 0
        if not (goal.hard and goal.held):
            broken = self.cp.new_bool_var("")
            self.broken[goal.level].append(broken)
        if goal.shape is Shape.SPREAD:
            self._spread(goal, broken)
        elif goal.shape is Shape.GATHER:
            self._gather(goal, broken)
        else:
            self._keep_to_hosts(goal, broken)

    def _fixed(self, goal: Goal) -> Counter[str]:
        """Where members are of whom nothing is decided."""
        where = self.scope.standing.where
        return Counter(where(vm) for vm in goal.vms if vm not in self.scope.domains)

    def _spread(self, goal: Goal, broken: Term) -> None:
        fixed = self._fixed(goal)
        members = set(goal.vms)
        hosts = {host for vm in goal.vms if vm in self.scope.domains for host in self.scope.domains[vm]}
        if goal.hard:
            for host in sorted(hosts):
                self._exclude(goal, host, fixed[host])
        if goal.partly:
            self._count_pairs(goal, fixed)
        if any(count > 1 for count in fixed.values()):
            self.cp.add(broken == 1)
            return
        for host in sorted(hosts):
            here = [self.at[vm, host] for vm in self.on[host] if vm in members]
            if fixed[host]:
                for one in here:
                    self.cp.add(one <= broken)
            elif len(here) > 1:
                if isinstance(broken, int):
                    self.cp.add_at_most_one(here)
                else:
                    self.cp.add(sum(here) <= 1 + (len(here) - 1) * broken)

    def _exclude(self, goal: Goal, host: str, fixed: int) -> None:
        """No filter lets a VM come to a host where a rival is, even if the rule stays broken elsewhere."""
        where = self.problem.where
        members = set(goal.vms)
        here = [vm for vm in self.on[host] if vm in members]
        coming = [self.at[vm, host] for vm in here if where[vm] != host]
        if fixed:
            for one in coming:
                self.cp.add(one == 0)
            return
        self.cp.add_at_most_one(coming)
        for vm in here:
            if where[vm] == host:
                self.cp.add_at_most_one([self.at[vm, host], *coming])

    def _count_pairs(self, goal: Goal, fixed: Counter[str]) -> None:
        """Whoever comes to a host is alone there: so only those that stay where they start share one."""
        staying: defaultdict[str, list[Term]] = defaultdict(list)
        for vm in goal.vms:
            if vm in self.scope.domains:
                home = self.problem.where[vm]
                staying[home].append(self.at[vm, home])
        for host in sorted({*fixed, *staying}):
            there, more = fixed[host], staying[host]
            self.pairs.append(there * (there - 1) // 2)
            # One after the other: the first is alone, the second makes a pair, the third two more ...
            nth = [self.cp.new_bool_var("") for _ in more]
            self.cp.add(sum(nth) == sum(more))
            self.pairs += [number * one for number, one in enumerate(nth, there)]
            self.most_pairs += (there + len(more)) * (there + len(more) - 1) // 2

    def _gather(self, goal: Goal, broken: Term) -> None:
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
            if is_fresh(self.scope.reach, goal, host):
                more = detour(self.problem, self.scope.reach, goal, host)
                if more is None:
                    self.cp.add(gathers == 0)
                else:
                    self.detours.append(more * gathers)
                    self.most_detours += more
        self.cp.add(sum(chosen) == 1 - broken)

    def _keep_to_hosts(self, goal: Goal, broken: Term) -> None:
        for host in self._fixed(goal):
            if not goal.right(host):
                self.cp.add(broken == 1)
                return
        for vm in goal.vms:
            if vm in self.scope.domains:
                right = [self.at[vm, host] for host in self.scope.domains[vm] if goal.right(host)]
                self.cp.add(sum(right) + broken >= 1)


def goals_of(problem: Problem, vms: Iterable[str]) -> list[Goal]:
    """The goals of any of these VMs, each once, in an order that does not depend on the engine's."""
    found = {goal.number: goal for vm in vms for goal in problem.goals_of.get(vm, ())}
    goals = [goal for goal in found.values() if goal.shape is not Shape.OTHER]
    return sorted(goals, key=lambda goal: (goal.level, goal.shape.name, goal.constraint.groups, goal.vms))
