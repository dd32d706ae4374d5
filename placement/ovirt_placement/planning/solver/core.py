"""The smallest set of elements that together make a goal unsatisfiable: one after another is left out."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ovirt_placement.planning.plan import Deadline, ObstacleKind
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.solver.forms import At, Members, Term, ask, cp_model
from ovirt_placement.rules.elements.rule import OfAll

#: VMs that are looked at together with those of the goal.
_MOST_VMS = 60
_MOST_PLACES = 20_000
#: Of these one question looks at as many in a second, at the least.
_PLACES_A_SECOND = 5_000
#: Elements that it is tried to do without: of a larger set no reader cares which are not needed.
_MOST_LEFT_OUT = 50
#: Units of work, not seconds, that one question may take.
_WORK = 2.0


#: In the order in which elements are left out, if either of two would do: first what matters less.
_DROPPED = (ObstacleKind.MEMORY, ObstacleKind.TARGETS, ObstacleKind.STAYS, ObstacleKind.RULE)


@dataclass(frozen=True, slots=True)
class Element:
    """A limit of a host, the hosts that filters leave a VM, a VM that stays, or a rule."""

    kind: ObstacleKind
    #: The host or the VM, or the groups of the rule.
    ids: tuple[str, ...]
    goal: Goal | None = None

    def rank(self) -> int:
        """The less, the sooner it is left out."""
        return _DROPPED.index(self.kind)


def elements(problem: Problem, goal: Goal, vms: tuple[str, ...]) -> Iterator[Element]:
    """Whatever might block a goal, as far as these VMs are concerned."""
    for host in problem.hosts:
        yield Element(ObstacleKind.MEMORY, (host,))
    for vm in vms:
        if not problem.targets[vm]:
            yield Element(ObstacleKind.STAYS, (vm,))
        elif not problem.targets[vm].issuperset(problem.hosts):
            yield Element(ObstacleKind.TARGETS, (vm,))
    seen = {goal.number}
    for vm in vms:
        for other in problem.goals_of.get(vm, ()):
            if _outranks(other, goal) and other.number not in seen and other.form is not None:
                seen.add(other.number)
                yield Element(ObstacleKind.RULE, other.constraint.groups, other)


def _outranks(other: Goal, goal: Goal) -> bool:
    """Whether no goal is repaired at the expense of another: that is satisfied, and counts no less."""
    return other.satisfied and other.level <= goal.level


def concerned(problem: Problem, goal: Goal, most: int) -> tuple[str, ...]:
    """The members of a goal and those that rules tie to them which matter as much, at most this many."""
    found: Mapping[str, None] = dict.fromkeys(goal.vms)
    waiting = list(found)
    known = dict(found)
    while waiting and len(known) < most:
        for other in problem.goals_of.get(waiting.pop(0), ()):
            tied = other.hard or _outranks(other, goal)
            fresh = [vm for vm in other.vms if vm not in known] if tied else []
            known.update(dict.fromkeys(fresh))
            waiting.extend(fresh)
    return tuple(known)


def core(problem: Problem, goal: Goal, deadline: Deadline) -> tuple[Element, ...] | None:
    """No proper part of it blocks the goal, unless it is large; None if nothing does, or if it is not known.

    All others are taken to stay where they are.
    """
    vms = concerned(problem, goal, _MOST_VMS)
    if len(vms) * len(problem.hosts) > min(_MOST_PLACES, _PLACES_A_SECOND * deadline.seconds_left()):
        return None
    if goal.form is None:
        return None
    question = _Question(problem, goal, vms)
    left = question.sufficient(sorted(elements(problem, goal, vms), key=Element.rank), deadline)
    if left is None:
        return None
    # All of a kind go at once, if they may: of hosts alone there are hundreds.
    for kind in _DROPPED:
        left = question.reduced(left, [one for one in left if one.kind is not kind], deadline)
    for dropped in left[:_MOST_LEFT_OUT]:
        left = question.reduced(left, [one for one in left if one is not dropped], deadline)
    return tuple(sorted(left, key=lambda one: (-one.rank(), one.ids)))


class _Question:
    """Whether a goal can be satisfied in spite of some elements."""

    def __init__(self, problem: Problem, goal: Goal, vms: Sequence[str]) -> None:
        self._problem = problem
        self._goal = goal
        self._hosts = {vm: tuple(dict.fromkeys((problem.where[vm], *problem.hosts))) for vm in vms}

    def reduced(self, left: list[Element], fewer: list[Element], deadline: Deadline) -> list[Element]:
        """What blocks the goal of the fewer; what is left, where they do not, or that is not found out."""
        if deadline.over or len(fewer) == len(left):
            return left
        found = self.sufficient(fewer, deadline)
        return left if found is None else found

    def sufficient(self, asked: Sequence[Element], deadline: Deadline) -> list[Element] | None:
        """Those of the elements that block the goal; None if they do not, or if that is not known."""
        cp = cp_model.CpModel()
        at = {(vm, host): cp.new_bool_var("") for vm, hosts in self._hosts.items() for host in hosts}
        for vm, hosts in self._hosts.items():
            cp.add_exactly_one(at[vm, host] for host in hosts)
        self._rule(cp, at, self._goal, cp.new_constant(1))
        by_index = {}
        for element in asked:
            literal = cp.new_bool_var("")
            by_index[literal.index] = element
            self._add(cp, at, element, literal)
            cp.add_assumption(literal)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = _WORK
        if (left := deadline.seconds_left()) < math.inf:
            solver.parameters.max_time_in_seconds = max(0.01, left)
        if solver.solve(cp) != cp_model.INFEASIBLE:
            return None
        named = set(solver.sufficient_assumptions_for_infeasibility())
        return [element for index, element in by_index.items() if index in named]

    def _add(self, cp: cp_model.CpModel, at: At, element: Element, literal: cp_model.IntVar) -> None:
        """What an element asks, under its literal."""
        if element.goal is not None:
            self._rule(cp, at, element.goal, literal)
            return
        problem, first = self._problem, element.ids[0]
        if element.kind is ObstacleKind.STAYS:
            cp.add_implication(literal, at[first, problem.where[first]])
        elif element.kind is ObstacleKind.TARGETS:
            for host in self._hosts[first]:
                if host != problem.where[first] and host not in problem.targets[first]:
                    cp.add_implication(literal, at[first, host].negated())
        else:
            self._room(cp, at, literal, first)

    def _rule(self, cp: cp_model.CpModel, at: At, goal: Goal, literal: cp_model.IntVar) -> None:
        known = {vm: self._hosts[vm] for vm in goal.vms if vm in self._hosts}
        if goal.form is not None and (len(known) == len(goal.vms) or not isinstance(goal.form, OfAll)):
            ask(Members(cp, at, known), goal.form, literal)

    def _room(self, cp: cp_model.CpModel, at: At, literal: cp_model.IntVar, host: str) -> None:
        where, memory_mb = self._problem.where, self._problem.memory_mb
        arrives = cp.new_bool_var("")
        taken: list[Term] = []
        for vm in self._hosts:
            if where[vm] == host:
                taken.append(-memory_mb[vm] * (1 - at[vm, host]))
            else:
                cp.add_implication(at[vm, host], arrives)
                taken.append(memory_mb[vm] * at[vm, host])
        cp.add(sum(taken) <= self._problem.free_mb[host]).only_enforce_if(literal, arrives)
