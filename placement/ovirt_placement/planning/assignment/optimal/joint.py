"""The end and the way to it decided as one, where no way was found to the best end."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ovirt_placement.planning.assignment.optimal.domains import reduced, roomiest
from ovirt_placement.planning.assignment.optimal.ends import Value, counted, put
from ovirt_placement.planning.assignment.optimal.model import Model, ModelScope, goals_of
from ovirt_placement.planning.assignment.optimal.move_schedule import MoveSchedule, in_sequence
from ovirt_placement.planning.assignment.optimal.stages import Stages
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.ordering.direct import direct_moves
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.onwards import after
from ovirt_placement.planning.problem.placement import ProblemPlacement, are_legal
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.problem.score import score

#: Times at which moves may begin: longer chains of moves that wait for each other are not found.
_TIMES = 40
#: Larger models than this are not built: pairs of VMs that might come to one host.
_MOST_PAIRS = 150_000
_MOST_BYSTANDERS = 40
#: Hosts that are offered beyond those that an end without regard to room can need.
_MORE_HOSTS = 4
#: The share of the time that is left for each way to look at it.
_SCOPE_SHARE = 0.6


class Joint:
    """A problem, and an end that no order of straight moves was found to."""

    def __init__(self, problem: Problem, where: Mapping[str, str]) -> None:
        self._problem = problem
        self._where = where
        self._candidates = CandidateHosts(problem)
        movable = {vm for vm in problem.memory_mb if len(self._candidates.of(vm)) > 1}
        few = {vm for vm in movable if vm in where or problem.goals_of.get(vm)}
        #: VMs to be decided again: those that move or have goals, and those near to what is stuck.
        self._scopes = sorted((few, near(problem, self._candidates, where) & movable), key=len)

    def reach(self, deadline: Deadline) -> tuple[Move, ...] | None:
        """Straight moves to an end that is as good."""
        for number, scope in enumerate(self._scopes):
            if scope not in self._scopes[:number]:
                found = self._solve(scope, deadline.within(_SCOPE_SHARE), exactly=True)
                if found is not None:
                    return found
        return None

    def best(self, deadline: Deadline) -> tuple[Move, ...] | None:
        """The best that straight moves were found to come to."""
        for scope in reversed(self._scopes):
            found = self._solve(scope, deadline, exactly=False)
            if found is not None:
                return found
        return None

    def _solve(self, scope: Collection[str], deadline: Deadline, *, exactly: bool) -> tuple[Move, ...] | None:
        """The others go first, each to its host; then those of the scope to where it is best for them."""
        others = {vm: host for vm, host in self._where.items() if vm not in scope}
        first = tuple(direct_moves(ProblemPlacement(self._problem), others))
        if sum(len(move.vms) for move in first) < len(others) or deadline.over:
            return None
        problem = after(self._problem, first)
        placement, candidates = ProblemPlacement(problem), CandidateHosts(problem)
        put(placement, {vm: host for vm, host in self._where.items() if vm in scope})
        domains = reduced(placement, candidates, scope, roomiest(placement), more=_MORE_HOSTS)
        if self._pairs(domains) > _MOST_PAIRS:
            return None
        model = Model(ModelScope(placement, candidates, domains))
        for detour in model.detours:
            model.cp.add(detour == 0)
        move_schedule = MoveSchedule(model, _TIMES)
        stages = Stages(model, workers=2, evenly=not exactly, asked=move_schedule.time)
        solved = stages.reach(_value(model), deadline) if exactly else stages.solve(deadline)
        if solved is None:
            return None
        moves = (*first, *in_sequence(problem, solved.where, solved.asked))
        return moves if are_legal(self._problem, moves) else None

    def _pairs(self, domains: Mapping[str, tuple[str, ...]]) -> int:
        coming = dict.fromkeys(self._problem.hosts, 0)
        for hosts in domains.values():
            for host in hosts[1:]:
                coming[host] += 1
        return sum(count * count for count in coming.values())


def near(problem: Problem, candidates: CandidateHosts, where: Mapping[str, str]) -> set[str]:
    """VMs that straight moves leave on the way, with those that share goals or hosts with them."""
    placement = ProblemPlacement(problem)
    direct_moves(placement, where)
    stuck = {vm for vm, host in where.items() if placement.where(vm) != host}
    found = {peer for vm in stuck for goal in problem.goals_of.get(vm, ()) for peer in goal.vms} | stuck
    hosts = {where[vm] for vm in stuck} | {problem.where[vm] for vm in stuck}
    found |= {vm for vm, host in where.items() if host in hosts or problem.where[vm] in hosts}
    found |= {peer for vm in found for goal in problem.goals_of.get(vm, ()) for peer in goal.vms}
    others = sorted(
        (vm for host in sorted(hosts) for vm in problem.on.get(host, ()) if vm in problem.memory_mb),
        key=lambda vm: (bool(problem.goals_of.get(vm)), vm),
    )
    return found | set(others[:_MOST_BYSTANDERS])


def _value(model: Model) -> Value:
    """What the end that the model's placement has is worth, as far as the model decides it."""
    placement = model.scope.placement
    goals = goals_of(model.problem, model.scope.domains)
    violated = (goal for goal in goals if (goal.wanted or goal.satisfied) and placement.violated(goal))
    counts, ended = counted(violated, placement), score(placement)
    counts[1], counts[-1] = ended.headroom_deficit_mb + ended.headroom_deficit_cpu, ended.migrations
    return tuple(counts)
