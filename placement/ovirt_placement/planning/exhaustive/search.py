"""Goes through all that legal sequences reach, the shortest first; stops where nothing better can come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.exhaustive.space import Flags, Numbers, Placements, Space, Value, Values
from ovirt_placement.planning.problem.candidate_hosts import CandidateHosts
from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Goal, Move, Problem
from ovirt_placement.planning.problem.score import score
from ovirt_placement.rules.elements.constraints import OnePlace
from ovirt_placement.rules.elements.placement import Arriving, Placement


class Moves:
    """All moves of a space."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._problem = space.problem
        self._hard = {
            vm: tuple(goal for goal in self._problem.goals_of.get(vm, ()) if goal.binding)
            for vm in space.hosts
        }
        self._gathering = tuple(
            goal for goal in self._problem.goals if goal.hard and goal.gathers and len(goal.vms) > 1
        )

    def after(self, states: Numbers) -> Iterator[tuple[Move, Numbers, Numbers]]:
        """Every move with the states in which it is legal and those that it leads to."""
        placements = self._space.placements(states)
        for vm, hosts in self._space.hosts.items():
            for host in hosts:
                if host in self._problem.targets[vm]:
                    legal = self._legal(placements, vm, host)
                    if legal.any():
                        froms = states[legal]
                        yield Move((vm,), host), froms, froms + self._change(froms, (vm,), host)
        for goal in self._gathering:
            for closure, inside in self._closures(placements, goal):
                yield from self._after_closure(self._space.placements(inside), goal, closure)

    def _legal(self, placements: Placements, vm: str, host: str) -> Flags:
        problem = self._problem
        legal = ~placements.on(vm, host) & (
            placements.taken_mb[host] <= problem.free_mb[host] - problem.memory_mb[vm]
        )
        # The engine's own filter: to a peer, wherever one is.
        legal &= self._joins(placements, sorted(problem.peers.get(vm, frozenset())), host)
        for goal in self._hard[vm]:
            if not legal.any():
                break
            if goal.collective:
                legal = self._lets_in_turn(placements, goal, (vm,), host, legal)
                legal = self._violates_nothing(placements, goal, (vm,), host, legal)
                continue
            admits = self._admits(placements, goal, vm, host)
            if goal.lenient and not problem.pending:
                admits |= self._no_worse(placements, goal, vm, host)
            legal &= admits
            if goal.gathers and len(goal.vms) > 1:
                legal &= placements.violated(goal)  # from a group that stands together no VM leaves alone
        return legal

    def _admits(
        self, placements: Placements, goal: Goal, vm: str, host: str, along: tuple[str, ...] = ()
    ) -> Flags:
        """Whether a goal lets a VM come, with others that come along."""
        others = [peer for peer in goal.vms if peer != vm]
        if goal.allowed is not None:
            return placements.every() if goal.right(host) else placements.none()
        if goal.limit is not None:
            coming = goal.limit.sets(one for one in (vm, *along) if one in goal.vms)
            rivals = [peer for peer in others if goal.limit.own_set(peer) not in coming]
            load = placements.load(goal.limit, rivals, goal.limit.place(host), arriving=True)
            return load <= goal.limit.most - len(coming)
        return self._joins(placements, others, host)

    def _lets_in_turn(
        self, placements: Placements, goal: Goal, vms: tuple[str, ...], host: str, legal: Flags
    ) -> Flags:
        """Asks the constraint alone, as the filter does: each VM as though those before it were there."""
        found = legal.copy()
        for place in np.flatnonzero(legal):
            there: Placement = self._space.at(int(placements.states[place]))
            others = (where for vm in goal.vms if vm not in vms for where in there.destinations(vm))
            if len(vms) > 1 and isinstance(goal.form, OnePlace) and goal.form.takes_whole(host, others):
                continue
            for vm in sorted(vms):
                if vm in goal.vms and not goal.constraint.lets(vm, host, there):
                    found[place] = False
                    break
                there = Arriving(there, (vm,), host)
        return found

    def _no_worse(self, placements: Placements, goal: Goal, vm: str, host: str) -> Flags:
        now = placements.excess(goal)
        return (now > 0) & (self._after(placements, (vm,), host).excess(goal) <= now)

    def _violates_nothing(
        self, placements: Placements, goal: Goal, vms: tuple[str, ...], host: str, legal: Flags
    ) -> Flags:
        return legal & (placements.violated(goal) | ~self._after(placements, vms, host).violated(goal))

    def _after(self, placements: Placements, vms: tuple[str, ...], host: str) -> Placements:
        return self._space.placements(placements.states + self._change(placements.states, vms, host))

    def _change(self, states: Numbers, vms: tuple[str, ...], host: str) -> Numbers:
        """What the numbers of placements change by, if VMs come to a host."""
        space = self._space
        return sum(
            ((space.hosts[vm].index(host) - space.digits(vm, states)) * space.strides[vm] for vm in vms),
            np.zeros(len(states), dtype=np.int64),
        )

    def _closures(self, placements: Placements, goal: Goal) -> Iterator[tuple[tuple[str, ...], Numbers]]:
        """What of a group may move at once, with the states in which it is all that is on its host."""
        able = [vm for vm in goal.vms if vm in self._space.hosts]
        fixed = [vm for vm in goal.vms if vm not in self._space.hosts]
        for place, first in enumerate(able[:-1]):
            here = placements.places(first)
            alone = placements.every()
            for other in (*able[:place], *fixed):
                alone &= placements.places(other) != here
            with_it = np.zeros(len(placements.states), dtype=np.int64)
            for number, other in enumerate(able[place + 1 :]):
                with_it |= (placements.places(other) == here).astype(np.int64) << number
            for members in np.unique(with_it[alone]):
                if members:
                    others = (vm for number, vm in enumerate(able[place + 1 :]) if members >> number & 1)
                    yield (first, *others), placements.states[alone & (with_it == members)]

    def _after_closure(
        self, placements: Placements, goal: Goal, closure: tuple[str, ...]
    ) -> Iterator[tuple[Move, Numbers, Numbers]]:
        problem, space = self._problem, self._space
        if any(
            other.parts(frozenset(closure)) and not other.lenient
            for vm in closure
            for other in self._hard[vm]
        ):
            return
        goals = {other.number: other for vm in closure for other in self._hard[vm] if not other.gathers}
        counted = [other for other in goals.values() if not (other.collective or other.lenient)]
        direct = {peer for vm in closure for peer in problem.peers.get(vm, ())}
        memory_mb = sum(problem.memory_mb[vm] for vm in closure)
        for host in sorted(
            frozenset.intersection(*(problem.targets[vm].intersection(space.hosts[vm]) for vm in closure))
        ):
            legal = ~placements.on(closure[0], host)
            legal &= placements.taken_mb[host] <= problem.free_mb[host] - memory_mb
            for peers in (direct, goal.vms):
                legal &= self._joins(placements, [peer for peer in peers if peer not in closure], host)
            for other in counted:
                for vm in closure:
                    if vm in other.vms:
                        legal &= self._admits(placements, other, vm, host, closure)
            for number in goals.keys() - {other.number for other in counted}:
                legal = self._lets_in_turn(placements, goals[number], closure, host, legal)
                legal = self._violates_nothing(placements, goals[number], closure, host, legal)
            if legal.any():
                froms = placements.states[legal]
                yield Move(closure, host), froms, froms + self._change(froms, closure, host)

    def _joins(self, placements: Placements, peers: Collection[str], host: str) -> Flags:
        """Whether any of the peers heads for a host; true where there are none."""
        joins = placements.none() if peers else placements.every()
        for peer in peers:
            joins |= placements.heads_for(peer, host)
        return joins


#: A problem with more placements is not searched; one with rules that only their constraints know, far fewer.
_MOST_STATES = 4_000_000
_MOST_STATES_ASKED_ONE_BY_ONE = 20_000
#: States that are looked at together.
_AT_ONCE = 200_000
#: Ends that are compared by how full they leave their targets.
_MOST_ENDS = 500
_NEVER = np.iinfo(np.int16).max


def shortest(problem: Problem, bound: Sequence[int], deadline: Deadline) -> tuple[Move, ...] | None:
    """The fewest migrations to the best that any legal sequence reaches; None if that is too much to know.

    `bound` is what no end can beat: hard, crowding, soft by level. Reaching it ends the search.
    """
    candidates = CandidateHosts(problem, other=True)
    at_once = any(goal.binding and goal.gathers for goal in problem.goals)
    other = any(goal.collective or (goal.lenient and at_once) for goal in problem.goals)
    size, most = 1, _MOST_STATES_ASKED_ONE_BY_ONE if other else _MOST_STATES
    for vm in problem.memory_mb:
        size *= len(candidates.of(vm))
        if size > most:
            return None
    space = Space(problem, candidates)
    return _Search(space, tuple(bound)).run(deadline) if Values(space).fit else None


class _Search:
    """Layers of placements by the number of migrations that reach them."""

    def __init__(self, space: Space, bound: Value) -> None:
        self._space = space
        self._problem = space.problem
        self._moves = Moves(space)
        self._values = Values(space)
        self._bound = self._values.joined(bound)
        self._steps = np.full(space.size, _NEVER, dtype=np.int16)
        #: The placement before, and the move that led from it.
        self._before = np.zeros(space.size, dtype=np.int64)
        self._by = np.zeros(space.size, dtype=np.int32)
        self._known: list[Move] = []
        self._best = np.iinfo(np.int64).max
        self._ends: list[Numbers] = []

    def run(self, deadline: Deadline) -> tuple[Move, ...] | None:
        layers: defaultdict[int, list[Numbers]] = defaultdict(list)
        layers[0].append(np.zeros(1, dtype=np.int64))
        self._steps[0] = 0
        while layers:
            steps = min(layers)
            reached = np.unique(np.concatenate(layers.pop(steps)))
            reached = reached[self._steps[reached] == steps]
            chunks = [reached[at : at + _AT_ONCE] for at in range(0, len(reached), _AT_ONCE)]
            for states in chunks:
                self._judge(states)
            if self._best <= self._bound:
                break
            for states in chunks:
                if deadline.over:
                    return None
                for cost, fresh in self._expand(states, steps):
                    layers[steps + cost].append(fresh)
        return self._path(self._choose_end())

    def _judge(self, states: Numbers) -> None:
        """Keep those that are the best so far; of such as need more steps none."""
        values = self._values.of(states)
        least = int(values.min())
        if least < self._best:
            self._best, self._ends = least, [states[values == least]]
        elif least == self._best and self._steps[states[0]] == self._steps[self._ends[0][0]]:
            self._ends.append(states[values == least])

    def _expand(self, states: Numbers, steps: int) -> Iterator[tuple[int, Numbers]]:
        for move, before, after in self._moves.after(states):
            cost = len(move.vms)
            shorter = self._steps[after] > steps + cost
            if shorter.any():
                fresh = after[shorter]
                self._steps[fresh] = steps + cost
                self._before[fresh] = before[shorter]
                self._by[fresh] = len(self._known)
                self._known.append(move)
                yield cost, fresh

    def _choose_end(self) -> int:
        """Of ends that are equal in all that is proven: the least memory, then the fullest target."""
        ends = np.concatenate(self._ends)
        memory = self._values.memory_mb(ends)
        lightest = ends[memory == memory.min()][:_MOST_ENDS]
        return min((int(end) for end in lightest), key=lambda end: (self._fullest(end), end))

    def _fullest(self, end: int) -> int:
        placement = ProblemPlacement(self._problem)
        placement.put(self._space.where(end))
        return score(placement).fullest

    def _path(self, state: int) -> tuple[Move, ...]:
        moves: list[Move] = []
        while state:
            moves.append(self._known[self._by[state]])
            state = int(self._before[state])
        return tuple(reversed(moves))
