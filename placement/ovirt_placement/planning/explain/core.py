"""The smallest set of elements that together make a goal unsatisfiable: one after another is left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ovirt_placement.planning.cp_forms import ask
from ovirt_placement.planning.cp_sat import cp_model
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.explain.elements import Element, ElementKind, concerned, elements
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.rules.constraints import OfAll

#: VMs that are looked at together with those of the goal.
_MOST_VMS = 60
_MOST_PLACES = 20_000
#: Of these one question looks at as many in a second, at the least.
_PLACES_A_SECOND = 5_000
#: Units of work, not seconds, that one question may take.
_WORK = 2.0


def core(problem: Problem, goal: Goal, deadline: Deadline) -> tuple[Element, ...] | None:
    """No proper part of it blocks the goal; None if nothing does, or if it is too much to find out.

    All others are taken to stay where they are.
    """
    vms = concerned(problem, goal, _MOST_VMS)
    if len(vms) * len(problem.hosts) > min(_MOST_PLACES, _PLACES_A_SECOND * deadline.seconds_left()):
        return None
    if goal.form is None:
        return None
    question = _Question(problem, goal, vms)
    left = question.sufficient(sorted(elements(problem, goal, vms), key=lambda one: one.kind.value), deadline)
    if left is None:
        return None
    for one in tuple(left):
        if deadline.over:
            break
        fewer = question.sufficient([other for other in left if other is not one], deadline)
        if fewer is not None:
            left = fewer
    return tuple(sorted(left, key=lambda one: (-one.kind.value, one.ids)))


class _Question:
    """Whether a goal can be satisfied in spite of some elements."""

    def __init__(self, problem: Problem, goal: Goal, vms: Sequence[str]) -> None:
        self._problem = problem
        self._goal = goal
        self._vms = vms

    def sufficient(self, asked: Sequence[Element], deadline: Deadline) -> list[Element] | None:
        """Those of the elements that block the goal; None if they do not, or if that is not known."""
        cp = cp_model.CpModel()
        at = {
            (vm, host): cp.new_bool_var("")
            for vm in self._vms
            for host in dict.fromkeys((self._problem.where[vm], *self._problem.hosts))
        }
        for vm in self._vms:
            cp.add_exactly_one(var for (one, _), var in at.items() if one == vm)
        model = _Constraints(self._problem, cp, at, self._vms)
        model.rule(self._goal, cp.new_constant(1))
        by_index = {}
        for element in asked:
            literal = cp.new_bool_var("")
            by_index[literal.index] = element
            model.add(element, literal)
            cp.add_assumption(literal)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = _WORK
        solver.parameters.max_time_in_seconds = max(0.01, min(5.0, deadline.seconds_left()))
        if solver.solve(cp) != cp_model.INFEASIBLE:
            return None
        named = set(solver.sufficient_assumptions_for_infeasibility())
        return [element for index, element in by_index.items() if index in named]


class _Constraints:
    """What an element or a goal asks, each under a literal."""

    def __init__(
        self,
        problem: Problem,
        cp: cp_model.CpModel,
        at: dict[tuple[str, str], cp_model.IntVar],
        vms: Collection[str],
    ) -> None:
        self._problem = problem
        self._cp = cp
        self._at = at
        self._vms = vms

    def add(self, element: Element, literal: cp_model.IntVar) -> None:
        if element.goal is not None:
            self.rule(element.goal, literal)
            return
        first = element.ids[0]
        if element.kind is ElementKind.STAYS:
            self._cp.add_implication(literal, self._at[first, self._problem.where[first]])
        elif element.kind is ElementKind.TARGETS:
            self._keep(literal, first, {*self._problem.targets[first], self._problem.where[first]})
        else:
            self._room(literal, first)

    def rule(self, goal: Goal, literal: cp_model.IntVar) -> None:
        hosts = dict.fromkeys(host for _, host in self._at)
        known = [vm for vm in goal.vms if vm in self._vms]
        if goal.form is not None and (len(known) == len(goal.vms) or not isinstance(goal.form, OfAll)):
            places = {vm: tuple(host for host in hosts if (vm, host) in self._at) for vm in known}
            ask(self._cp, goal.form, self._at, places, literal)

    def _keep(self, literal: cp_model.IntVar, vm: str, hosts: Collection[str]) -> None:
        for (one, host), var in self._at.items():
            if one == vm and host not in hosts:
                self._cp.add_implication(literal, var.negated())

    def _room(self, literal: cp_model.IntVar, host: str) -> None:
        problem = self._problem
        coming = [vm for vm in self._vms if problem.where[vm] != host]
        leaving = [vm for vm in self._vms if problem.where[vm] == host]
        arrives = self._cp.new_bool_var("")
        for vm in coming:
            self._cp.add_implication(self._at[vm, host], arrives)
        taken = sum(problem.memory_mb[vm] * self._at[vm, host] for vm in coming)
        freed = sum(problem.memory_mb[vm] * (1 - self._at[vm, host]) for vm in leaving)
        self._cp.add(taken - freed <= problem.free_mb[host]).only_enforce_if(literal, arrives)
