"""A way to the end as part of the model: when each VM goes, so that every state between is legal.

Every VM goes at most once, straight to its end. Steps at one time may run at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ovirt_placement.planning.assignment.optimal.model import Model
from ovirt_placement.planning.cp_sat import cp_model
from ovirt_placement.planning.encode.cp import Term
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.rules.forms import AtMost


class MoveSchedule:
    """Times of the moves of a model in which all VMs are where they start, unless they have domains."""

    def __init__(self, model: Model, most_steps: int) -> None:
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
            self._limit(host)
        for vm in self._moving:
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
