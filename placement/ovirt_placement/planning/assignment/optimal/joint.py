"""The end and the way to it decided as one, where no way was found to the best end.

Every VM goes at most once, straight to its end. Steps at one time may run at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ovirt_placement.planning.assignment.optimal.model import Model, ModelScope, goals_of, reduced, roomiest
from ovirt_placement.planning.assignment.optimal.stages import Stages, Value, counted, put
from ovirt_placement.planning.cp_forms import Term
from ovirt_placement.planning.cp_sat import cp_model
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.ordering.detours import direct_moves
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.placement import ProblemPlacement, after, are_legal
from ovirt_placement.planning.problem.problem import Goal, Move, Problem
from ovirt_placement.planning.problem.score import score
from ovirt_placement.rules.constraints import AtMost


class MoveSchedule:
    """Times of the moves of a model in which all VMs are where they start, unless they have domains."""

    def __init__(self, model: Model, most_steps: int, deadline: Deadline) -> None:
        """Once the deadline is over it is left as it is, of no use."""
        self._model = model
        self._problem = model.problem
        self._cp = model.cp
        self._moving = [vm for vm in sorted(model.scope.domains) if len(model.scope.domains[vm]) > 1]
        self.time = {vm: self._cp.new_int_var(0, most_steps, "") for vm in self._moving}
        self._earlier: dict[tuple[str, str], cp_model.IntVar] = {}
        self._left: dict[tuple[str, str], cp_model.IntVar] = {}
        #: Of a VM that may go with others at once: these, itself among them, and whether they do.
        self._at_once = dict(self._closures())
        for host in self._problem.hosts:
            if deadline.over:
                return
            self._limit(host)
        for vm in self._moving:
            if deadline.over:
                return
            for goal in self._problem.goals_of.get(vm, ()):
                if goal.binding and goal.limit is not None:
                    self._wait_for_rivals(vm, goal, goal.limit)
            self._join_peers(vm)
        for closure, at_once in self._at_once.values():
            self._go_at_once(closure, at_once)

    def _limit(self, host: str) -> None:
        """A VM that comes fits besides those that have not left for certain and those who may have come."""
        problem, at = self._problem, self._model.at
        memory = problem.memory_mb
        here = [vm for vm in self._model.on.get(host, ()) if vm in self.time]
        coming = [vm for vm in here if problem.where[vm] != host]
        leaving = [vm for vm in here if problem.where[vm] == host]
        room = problem.free_mb[host]
        if sum(memory[vm] for vm in coming) <= room:
            return
        for vm in coming:
            taken: list[Term] = [memory[vm]]
            for other in coming:
                if other != vm:
                    shared = self._cp.new_bool_var("")
                    self._cp.add_bool_or(
                        [shared, at[other, host].negated(), self._before(vm, other), at[vm, host].negated()]
                    )
                    taken.append(memory[other] * shared)
            freed = [memory[other] * self._gone(other, vm) for other in leaving]
            self._cp.add(sum(taken) - sum(freed) <= room).only_enforce_if(at[vm, host])

    def _gone(self, first: str, then: str) -> cp_model.IntVar:
        """Only true if the first VM has left its host for good before the other goes."""
        known = self._left.get((first, then))
        if known is None:
            known = self._left[first, then] = self._cp.new_bool_var("")
            self._cp.add_implication(known, self._before(first, then))
            self._cp.add_implication(known, self._model.at[first, self._problem.where[first]].negated())
        return known

    def _wait_for_rivals(self, vm: str, goal: Goal, limit: AtMost) -> None:
        """A VM goes to the place of rivals only when all have left it that are to leave."""
        at, where = self._model.at, self._problem.where
        for rival in goal.rivals({vm}):
            place = limit.place(where[rival])
            stays = [at[rival, host] for host in self._domain(rival) if limit.place(host) == place]
            for host in self._domain(vm) if rival in self.time else ():
                if limit.place(host) == place and host != where[vm]:
                    before = self._before(rival, vm)
                    self._cp.add_bool_or([at[vm, host].negated(), *stays, before])

    def _join_peers(self, vm: str) -> None:
        """A VM that goes alone goes where a peer is then; the engine asks for one of its own groups."""
        for goal in self._gathering(vm):
            alone = [self._at_once[vm][1]] if vm in self._at_once else []
            self._join(vm, set(goal.vms) - {vm}, alone)
            self._join(vm, self._problem.peers.get(vm, frozenset()), alone)

    def _join(self, vm: str, peers: Collection[str], unless: Sequence[cp_model.LiteralT]) -> None:
        at, home = self._model.at, self._problem.where[vm]
        for host in self._model.scope.domains[vm] if peers else ():
            if host != home:
                there = self._there(vm, sorted(peers), host)
                self._cp.add_bool_or([at[vm, host].negated(), *unless, *there])

    def _go_at_once(self, closure: tuple[str, ...], at_once: cp_model.IntVar) -> None:
        """All from one host to another, where a peer of any of them is, and all that are there then."""
        first, *others = closure
        at, moving = self._model.at, frozenset(closure)
        for vm in others:
            self._cp.add(self.time[vm] == self.time[first]).only_enforce_if(at_once)
            for host in {*self._model.scope.domains[vm], *self._model.scope.domains[first]}:
                both = (at.get((vm, host), 0), at.get((first, host), 0))
                self._cp.add(both[0] == both[1]).only_enforce_if(at_once)
        members = {member for goal in self._gathering(first) for member in goal.vms}
        direct = {peer for vm in closure for peer in self._problem.peers.get(vm, ())}
        for peers in (members - moving, direct - moving):
            self._join(first, peers, [at_once.negated()])
        for other in members - moving:
            if (other, self._problem.where[first]) in at:
                self._cp.add_implication(at_once, at[other, self._problem.where[first]].negated())

    def _there(self, vm: str, peers: Sequence[str], host: str) -> list[cp_model.LiteralT]:
        """What makes that a peer is on a host when a VM goes there; a number 1 if one is for certain."""
        at, where = self._model.at, self._problem.where
        found: list[cp_model.LiteralT] = []
        for peer in peers:
            if peer not in self.time:
                if host in (self._problem.pending.get(peer) or (where[peer],)):
                    found.append(self._cp.new_constant(1))
                continue
            if where[peer] == host:
                found.append(at[peer, host])
                later = self._before(vm, peer)
                found.append(later)
            elif (peer, host) in at:
                both = self._cp.new_bool_var("")
                self._cp.add_implication(both, at[peer, host])
                self._cp.add_implication(both, self._before(peer, vm))
                found.append(both)
        return found

    def _before(self, first: str, then: str) -> cp_model.IntVar:
        """Only true if the first VM has gone before the other goes."""
        known = self._earlier.get((first, then))
        if known is None:
            known = self._earlier[first, then] = self._cp.new_bool_var("")
            self._cp.add(self.time[first] + 1 <= self.time[then]).only_enforce_if(known)
        return known

    def _closures(self) -> Iterator[tuple[str, tuple[tuple[str, ...], cp_model.IntVar]]]:
        """VMs that start together, by each of them; a group that stands whole moves at once or not at all."""
        for goal in self._problem.goals:
            if goal.hard and goal.gathers:
                for vms in _starting_together(self._problem, goal):
                    if all(vm in self.time for vm in vms):
                        at_once = self._cp.new_constant(1) if goal.satisfied else self._cp.new_bool_var("")
                        yield from ((vm, (vms, at_once)) for vm in vms)

    def _domain(self, vm: str) -> Sequence[str]:
        return self._model.scope.domains.get(vm, ())

    def _gathering(self, vm: str) -> list[Goal]:
        goals = self._problem.goals_of.get(vm, ())
        return [goal for goal in goals if goal.hard and goal.gathers]


def _starting_together(problem: Problem, goal: Goal) -> list[tuple[str, ...]]:
    """Two or more members of a group that start on one host."""
    by_host: dict[str, tuple[str, ...]] = {}
    for vm in goal.vms:
        by_host[problem.where[vm]] = (*by_host.get(problem.where[vm], ()), vm)
    return [vms for vms in by_host.values() if len(vms) > 1]


def in_sequence(problem: Problem, where: Mapping[str, str], times: Mapping[str, int]) -> list[Move]:
    """Moves by their times: members of a positive group that start and go at one time go at once."""
    at_once = {
        vm: vms
        for goal in problem.goals
        if goal.hard and goal.gathers
        for vms in _starting_together(problem, goal)
        if len({(where.get(vm), times.get(vm)) for vm in vms}) == 1
        for vm in vms
    }
    moves: dict[tuple[str, ...], tuple[int, str]] = {}
    for vm, host in sorted(where.items()):
        if host != problem.where[vm]:
            moves[at_once.get(vm, (vm,))] = (times[vm], host)
    return [Move(vms, host) for vms, (_, host) in sorted(moves.items(), key=lambda one: (one[1][0], one[0]))]


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
                found = self._solve(scope, deadline.within(_SCOPE_SHARE))
                if found is not None:
                    return found
        return None

    def _solve(self, scope: Collection[str], deadline: Deadline) -> tuple[Move, ...] | None:
        """The others go first, each to its host; then those of the scope to where it is as good for them."""
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
        model = Model(ModelScope(placement, candidates, domains), deadline)
        if not model.whole:
            return None
        for detour in model.detours:
            model.cp.add(detour == 0)
        move_schedule = MoveSchedule(model, _TIMES, deadline)
        if deadline.over:
            return None
        stages = Stages(model, workers=2, evenly=False, asked=move_schedule.time)
        solved = stages.reach(_value(model), deadline)
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
    found = _tied(problem, stuck)
    hosts = {where[vm] for vm in stuck} | {problem.where[vm] for vm in stuck}
    found |= {vm for vm, host in where.items() if host in hosts or problem.where[vm] in hosts}
    found = _tied(problem, found)
    others = sorted(
        (vm for host in sorted(hosts) for vm in problem.on.get(host, ()) if vm in problem.memory_mb),
        key=lambda vm: (bool(problem.goals_of.get(vm)), vm),
    )
    return found | set(others[:_MOST_BYSTANDERS])


def _tied(problem: Problem, vms: Collection[str]) -> set[str]:
    """VMs with those that share goals with them; a sum, which may be about all of them, ties none."""
    goals = {goal for vm in vms for goal in problem.goals_of.get(vm, ()) if goal.sum is None}
    return {*vms, *(peer for goal in goals for peer in goal.vms)}


def _value(model: Model) -> Value:
    """What the end that the model's placement has is worth, as far as the model decides it."""
    placement = model.scope.placement
    goals = goals_of(model.problem, model.scope.domains)
    violated = (goal for goal in goals if (goal.wanted or goal.satisfied) and placement.violated(goal))
    counts, ended = counted(violated, placement), score(placement)
    counts[1], counts[-1] = ended.headroom_deficit_mb + ended.headroom_deficit_cpu, ended.migrations
    return tuple(counts)
