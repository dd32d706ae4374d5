"""A way to the end as part of the model: when each VM goes, so that every state between is legal.

Every VM goes at most once, straight to its end. Steps at one time may run at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ortools.sat.python import cp_model

from ovirt_placement.planning.choosing.optimal.model import Model, Term
from ovirt_placement.planning.problem.goal import Goal, Shape
from ovirt_placement.planning.problem.problem import Move, Problem


class Passage:
    """Times of the moves of a model in which all VMs are where they start, unless they have domains."""

    def __init__(self, model: Model, most_steps: int) -> None:
        self._model = model
        self._problem = model.problem
        self._cp = model.cp
        self._moving = [vm for vm in sorted(model.scope.domains) if len(model.scope.domains[vm]) > 1]
        self.time = {vm: self._cp.new_int_var(0, most_steps, "") for vm in self._moving}
        self._earlier: dict[tuple[str, str], cp_model.IntVar] = {}
        self._left: dict[tuple[str, str], cp_model.IntVar] = {}
        for host in self._problem.hosts:
            self._limit(host)
        for vm in self._moving:
            for goal in self._problem.goals_of.get(vm, ()):
                if goal.hard and goal.shape is Shape.SPREAD:
                    self._wait_for_rivals(vm, goal)
            self._join_peers(vm)
        for goal in self._closures():
            first, *others = goal.vms
            for vm in others:
                self._cp.add(self.time[vm] == self.time[first])

    def _limit(self, host: str) -> None:
        """Whoever comes fits beside those who have not left for certain and those who may have come."""
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
                    beside = self._cp.new_bool_var("")
                    self._cp.add_bool_or(
                        [beside, at[other, host].negated(), self._before(vm, other), at[vm, host].negated()]
                    )
                    taken.append(memory[other] * beside)
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

    def _wait_for_rivals(self, vm: str, goal: Goal) -> None:
        """A VM goes where a rival was only when that has left."""
        for rival in goal.vms:
            host = self._problem.where[rival]
            arrives = self._model.at.get((vm, host)) if self._problem.where[vm] != host else None
            if rival != vm and rival in self.time and arrives is not None:
                self._cp.add(self.time[rival] + 1 <= self.time[vm]).only_enforce_if(arrives)

    def _join_peers(self, vm: str) -> None:
        """A VM of a split group goes where a peer is then; the engine asks for one of its own groups."""
        at, where = self._model.at, self._problem.where
        closing = {goal.number for goal in self._closures()}
        goals = [
            goal
            for goal in self._problem.goals_of.get(vm, ())
            if goal.hard and goal.shape is Shape.GATHER and goal.number not in closing
        ]
        groups = [tuple(peer for peer in goal.vms if peer != vm) for goal in goals]
        if goals and (peers := self._problem.peers.get(vm)):
            groups.append(tuple(sorted(peers)))
        for group in groups:
            for host in self._model.scope.domains[vm]:
                if host != where[vm]:
                    self._cp.add_bool_or([at[vm, host].negated(), *self._there(vm, group, host)])

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

    def _closures(self) -> list[Goal]:
        return [
            goal
            for goal in self._problem.goals
            if goal.hard
            and goal.held
            and goal.shape is Shape.GATHER
            and len(goal.vms) > 1
            and all(vm in self.time for vm in goal.vms)
        ]


def in_sequence(problem: Problem, where: Mapping[str, str], times: Mapping[str, int]) -> list[Move]:
    """Moves by their times: a positive group that stands together goes at once."""
    moves: dict[tuple[str, ...], tuple[int, str]] = {}
    for vm, host in sorted(where.items()):
        if host != problem.where[vm]:
            vms: tuple[str, ...] = (vm,)
            for goal in problem.goals_of.get(vm, ()):
                if goal.hard and goal.held and goal.shape is Shape.GATHER and len(goal.vms) > 1:
                    vms = goal.vms
            moves[vms] = (times[vm], host)
    return [Move(vms, host) for vms, (_, host) in sorted(moves.items(), key=lambda one: (one[1][0], one[0]))]
