"""An end as good as one that is known, to which every VM goes straight: with no detour it is the best plan.

Hosts get their VMs one host after another. Where these need room or places of VMs that leave, those leave
first, and so the hosts that they go to come before. That is more than is needed: no end, or one with more
migrations, proves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ovirt_placement.planning.detours import direct_moves
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.ends import CandidateHosts, score
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Goal, Problem
from ovirt_placement.planning.solver.forms import cp_model
from ovirt_placement.planning.solver.model import Model, ModelScope, goals_of, reduced, roomiest
from ovirt_placement.planning.solver.stages import Stages, Value, counted
from ovirt_placement.rules.elements.constraints import AtMost

#: Larger models than this are not built: places to choose from.
_MOST_PLACES = 6_000
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
        found = _solve(placement, candidates, vms, deadline.within(_SHARE))
        if found is not None and not _stuck(problem, found):
            return found
    return None


def _stuck(problem: Problem, where: Mapping[str, str]) -> bool:
    """Whether no order is seen in which all go to their hosts at once, from where they start."""
    start = ProblemPlacement(problem)
    direct_moves(start, where)
    return start.moved != where


def _solve(
    placement: ProblemPlacement, candidates: CandidateHosts, vms: Collection[str], deadline: Deadline
) -> Mapping[str, str] | None:
    domains = reduced(placement, candidates, vms, roomiest(placement), more=_MORE_HOSTS)
    if deadline.over or sum(map(len, domains.values())) > _MOST_PLACES:
        return None
    model = Model(ModelScope(placement, candidates, domains), deadline)
    if not model.whole:
        return None
    for detour in model.detours:
        model.cp.add(detour == 0)
    _Turns(model).limit()
    solved = Stages(model, workers=2, evenly=False).solve(deadline, _value(model), held=True)
    if solved is None:
        return None
    where = {**placement.moved, **solved.where}
    return {vm: host for vm, host in where.items() if host != placement.problem.where[vm]}


class _Turns:
    """The hosts one after another: in its turn, each gets all VMs that come to it."""

    def __init__(self, model: Model) -> None:
        self._model, self._domains = model, model.scope.domains
        hosts = model.problem.hosts
        self._turn = {host: model.cp.new_int_var(0, len(hosts), "") for host in hosts}

    def limit(self) -> None:
        for host in self._model.on:
            self._limit_room(host)
        for vm in self._domains:
            for goal in self._model.problem.goals_of.get(vm, ()):
                if goal.binding and goal.limit is not None:
                    self._limit_rivals(vm, goal, goal.limit)

    def _limit_room(self, host: str) -> None:
        """What comes fits, or what leaves has left before."""
        model, problem = self._model, self._model.problem
        memory, free_mb = problem.memory_mb, problem.free_mb.get(host, 0)
        coming = [vm for vm in model.on[host] if problem.where[vm] != host]
        if sum(memory[vm] for vm in coming) <= free_mb:
            return
        waits = model.cp.new_bool_var("")
        taken = sum(memory[vm] * model.at[vm, host] for vm in coming)
        model.cp.add(taken <= max(0, free_mb)).only_enforce_if(waits.negated())
        for vm in model.on[host]:
            if problem.where[vm] == host:
                for other in self._domains[vm]:
                    self._before(vm, other, host, waits)

    def _limit_rivals(self, vm: str, goal: Goal, limit: AtMost) -> None:
        """Rivals that leave a place have left it before a VM comes there."""
        model, home = self._model, self._model.problem.where
        for rival in goal.rivals({vm}):
            place = limit.place(home[rival])
            for host in self._domains[vm] if rival in self._domains else ():
                if limit.place(host) == place and host != home[vm]:
                    for other in self._domains[rival]:
                        if limit.place(other) != place:
                            self._before(rival, other, host, model.at[vm, host])

    def _before(self, vm: str, other: str, host: str, condition: cp_model.IntVar) -> None:
        """If a VM goes to another host, and on this condition, that host has its turn before."""
        if other != self._model.problem.where[vm]:
            earlier = self._model.cp.add(self._turn[other] + 1 <= self._turn[host])
            earlier.only_enforce_if(condition, self._model.at[vm, other])


def _value(model: Model) -> Value:
    """What the end that the model's placement has is worth, as far as the model decides it."""
    placement = model.scope.placement
    goals = goals_of(model.problem, model.scope.domains)
    violated = (goal for goal in goals if (goal.wanted or goal.satisfied) and placement.violated(goal))
    counts, ended = counted(violated, placement), score(placement)
    counts[1], counts[-1] = ended.headroom_deficit_mb + ended.headroom_deficit_cpu, ended.migrations
    return tuple(counts)
