"""What may be done in many standings at once: as `Standing.legal` and `legal_closure` say of one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ovirt_placement.planning.exact.space import At, Flags, Look, Numbers, Space
from ovirt_placement.planning.problem.goal import Goal, Shape
from ovirt_placement.planning.problem.problem import Move


class Moves:
    """All moves of a space."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._problem = space.problem
        self._hard = {
            vm: tuple(goal for goal in self._problem.goals_of.get(vm, ()) if goal.hard) for vm in space.hosts
        }
        self._closures = tuple(
            goal
            for goal in self._problem.goals
            if goal.hard and goal.shape is Shape.GATHER and self._may_close(goal)
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
        for goal in self._closures:
            yield from self._after_closure(look, goal)

    def _legal(self, look: Look, vm: str, host: str) -> Flags:
        problem = self._problem
        legal = ~look.on(vm, host) & (look.taken_mb[host] <= problem.free_mb[host] - problem.memory_mb[vm])
        peers = sorted(problem.peers.get(vm, frozenset()))
        if peers:
            # The engine's own filter: to a peer, wherever one is.
            joins = look.none()
            for peer in peers:
                joins |= look.heads_for(peer, host)
            legal &= joins
        for goal in self._hard[vm]:
            if not legal.any():
                break
            legal &= self._admits(look, goal, vm, host)
            if goal.shape is Shape.GATHER and len(goal.vms) > 1:
                legal &= look.broken(goal)  # from a group that stands together nobody leaves alone
            elif goal.shape is Shape.OTHER:
                legal = self._breaks_nothing(look, goal, vm, host, legal)
        return legal

    def _admits(self, look: Look, goal: Goal, vm: str, host: str) -> Flags:
        others = [peer for peer in goal.vms if peer != vm]
        if goal.shape is Shape.HOSTS:
            return look.every() if goal.right(host) else look.none()
        if goal.shape is Shape.SPREAD:
            free = look.every()
            for peer in others:
                free &= ~look.holds(peer, host)
            return free
        if goal.shape is Shape.GATHER:
            joins = look.none() if others else look.every()
            for peer in others:
                joins |= look.heads_for(peer, host)
            return joins
        return np.array(
            [goal.constraint.admits(vm, host, At(self._space, int(state))) for state in look.states],
            dtype=np.bool_,
        )

    def _breaks_nothing(self, look: Look, goal: Goal, vm: str, host: str, legal: Flags) -> Flags:
        digit = self._space.hosts[vm].index(host)
        change = (digit - self._space.digits(vm, look.states)) * self._space.strides[vm]
        after = self._space.look(look.states + change)
        return legal & (look.broken(goal) | ~after.broken(goal))

    def _may_close(self, goal: Goal) -> bool:
        members = frozenset(goal.vms)
        return all(
            vm in self._space.hosts
            and not any(
                peer in self._problem.where for peer in self._problem.peers.get(vm, frozenset()) - members
            )
            and not any(
                other.shape is Shape.OTHER
                or (other.shape is Shape.SPREAD and len(members.intersection(other.vms)) > 1)
                for other in self._hard[vm]
            )
            for vm in goal.vms
        )

    def _after_closure(self, look: Look, goal: Goal) -> Iterator[tuple[Move, Numbers, Numbers]]:
        problem, space = self._problem, self._space
        common = frozenset(problem.hosts).intersection(*(space.hosts[vm] for vm in goal.vms))
        memory_mb = sum(problem.memory_mb[vm] for vm in goal.vms)
        for host in sorted(common):
            if not all(host in problem.targets[vm] for vm in goal.vms):
                continue
            legal = ~look.broken(goal) & ~look.on(goal.vms[0], host)
            legal &= look.taken_mb[host] <= problem.free_mb[host] - memory_mb
            for vm in goal.vms:
                for other in self._hard[vm]:
                    if other.shape is not Shape.GATHER:
                        legal &= self._admits(look, other, vm, host)
            if legal.any():
                froms = look.states[legal]
                change = sum(
                    (space.hosts[vm].index(host) - space.digits(vm, froms)) * space.strides[vm]
                    for vm in goal.vms
                )
                yield Move(goal.vms, host), froms, froms + change
