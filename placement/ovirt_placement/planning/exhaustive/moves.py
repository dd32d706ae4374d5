"""What may be done in many placements at once: as `ProblemPlacement.legal` and `legal_closure` say of one."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from ovirt_placement.planning.exhaustive.space import At, Flags, Look, Numbers, Space
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.problem import Move


class Moves:
    """All moves of a space."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._problem = space.problem
        self._hard = {
            vm: tuple(goal for goal in self._problem.goals_of.get(vm, ()) if goal.hard) for vm in space.hosts
        }
        self._gathering = tuple(
            goal for goal in self._problem.goals if goal.hard and goal.gathers and len(goal.vms) > 1
        )

    def after(self, states: Numbers) -> Iterator[tuple[Move, Numbers, Numbers]]:
        """Every move with the states in which it is legal and those that it leads to."""
        look = self._space.look(states)
        for vm, hosts in self._space.hosts.items():
            for digit, host in enumerate(hosts):
                if host in self._problem.targets[vm]:
                    legal = self._legal(look, vm, host)
                    if legal.any():
                        froms = states[legal]
                        change = (digit - self._space.digits(vm, froms)) * self._space.strides[vm]
                        yield Move((vm,), host), froms, froms + change
        for goal in self._gathering:
            for closure, inside in self._closures(look, goal):
                yield from self._after_closure(self._space.look(inside), goal, closure)

    def _legal(self, look: Look, vm: str, host: str) -> Flags:
        problem = self._problem
        legal = ~look.on(vm, host) & (look.taken_mb[host] <= problem.free_mb[host] - problem.memory_mb[vm])
        # The engine's own filter: to a peer, wherever one is.
        legal &= self._joins(look, sorted(problem.peers.get(vm, frozenset())), host)
        for goal in self._hard[vm]:
            if not legal.any():
                break
            legal &= self._admits(look, goal, vm, host)
            if goal.gathers and len(goal.vms) > 1:
                legal &= look.violated(goal)  # from a group that stands together nobody leaves alone
            elif goal.opaque:
                legal = self._violates_nothing(look, goal, vm, host, legal)
        return legal

    def _admits(self, look: Look, goal: Goal, vm: str, host: str, along: tuple[str, ...] = ()) -> Flags:
        """Whether a goal lets a VM come, with others that come along."""
        others = [peer for peer in goal.vms if peer != vm]
        if goal.allowed is not None:
            return look.every() if goal.right(host) else look.none()
        if goal.limit is not None:
            coming = goal.limit.sets(one for one in (vm, *along) if one in goal.vms)
            rivals = [peer for peer in others if goal.limit.own_set(peer) not in coming]
            load = look.load(goal.limit, rivals, goal.limit.place(host), arriving=True)
            return load <= goal.limit.most - len(coming)
        if goal.gathers:
            return self._joins(look, others, host)
        return np.array(
            [goal.constraint.admits(vm, host, At(self._space, int(state))) for state in look.states],
            dtype=np.bool_,
        )

    def _violates_nothing(self, look: Look, goal: Goal, vm: str, host: str, legal: Flags) -> Flags:
        digit = self._space.hosts[vm].index(host)
        change = (digit - self._space.digits(vm, look.states)) * self._space.strides[vm]
        after = self._space.look(look.states + change)
        return legal & (look.violated(goal) | ~after.violated(goal))

    def _closures(self, look: Look, goal: Goal) -> Iterator[tuple[tuple[str, ...], Numbers]]:
        """What of a group may move at once, with the states in which it is all that is on its host."""
        able = [vm for vm in goal.vms if vm in self._space.hosts]
        fixed = [vm for vm in goal.vms if vm not in self._space.hosts]
        for place, first in enumerate(able[:-1]):
            here = look.places(first)
            alone = look.every()
            for other in (*able[:place], *fixed):
                alone &= look.places(other) != here
            with_it = np.zeros(len(look.states), dtype=np.int64)
            for number, other in enumerate(able[place + 1 :]):
                with_it |= (look.places(other) == here).astype(np.int64) << number
            for members in np.unique(with_it[alone]):
                if members:
                    others = (vm for number, vm in enumerate(able[place + 1 :]) if members >> number & 1)
                    yield (first, *others), look.states[alone & (with_it == members)]

    def _after_closure(
        self, look: Look, goal: Goal, closure: tuple[str, ...]
    ) -> Iterator[tuple[Move, Numbers, Numbers]]:
        problem, space = self._problem, self._space
        if not self._may_go_at_once(closure):
            return
        direct = {peer for vm in closure for peer in problem.peers.get(vm, ())}
        memory_mb = sum(problem.memory_mb[vm] for vm in closure)
        for host in sorted(
            frozenset.intersection(*(problem.targets[vm].intersection(space.hosts[vm]) for vm in closure))
        ):
            legal = ~look.on(closure[0], host)
            legal &= look.taken_mb[host] <= problem.free_mb[host] - memory_mb
            for peers in (direct, goal.vms):
                legal &= self._joins(look, [peer for peer in peers if peer not in closure], host)
            for vm in closure:
                for other in self._hard[vm]:
                    if not other.gathers:
                        legal &= self._admits(look, other, vm, host, closure)
            if legal.any():
                froms = look.states[legal]
                change = sum(
                    (space.hosts[vm].index(host) - space.digits(vm, froms)) * space.strides[vm]
                    for vm in closure
                )
                yield Move(closure, host), froms, froms + change

    def _may_go_at_once(self, closure: tuple[str, ...]) -> bool:
        """Whether no rule parts them, and none is judged by itself alone."""
        return not any(
            other.opaque or other.parts(frozenset(closure)) for vm in closure for other in self._hard[vm]
        )

    def _joins(self, look: Look, peers: Collection[str], host: str) -> Flags:
        """Whether any of the peers heads for a host; true where there are none."""
        joins = look.none() if peers else look.every()
        for peer in peers:
            joins |= look.heads_for(peer, host)
        return joins
