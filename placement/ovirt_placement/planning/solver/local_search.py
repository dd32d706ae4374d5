"""One restart after the other from another point: the best is kept, as long as time and patience last."""

import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple

from ovirt_placement.planning.detours import direct_moves
from ovirt_placement.planning.plan import Deadline
from ovirt_placement.planning.problem.bound import fixed
from ovirt_placement.planning.problem.ends import Value, score, value
from ovirt_placement.planning.problem.placement import (
    ProblemPlacement,
    ReversiblePlacement,
    are_legal,
    placement_after,
)
from ovirt_placement.planning.problem.problem import Goal, Move, Problem


class Walk(ReversiblePlacement):
    """A placement, and the moves that led to it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        #: How many moves may still be tried: at 0 none is legal any more.
        self.tries = 0

    @property
    def moves(self) -> tuple[Move, ...]:
        return self.since(0)

    @property
    def value(self) -> Value:
        return (*score(self.placement).value[:-1], sum(len(move.vms) for move in self.moves))

    def go(self, vms: tuple[str, ...], host: str) -> bool:
        """Move VMs at once, if that is legal."""
        move = Move(vms, host)
        self.tries -= 1
        if self.tries < 0 or not self.placement.allows(move):
            return False
        self.move(move)
        return True

    def residents(self, host: str) -> list[str]:
        """VMs on a host that may be migrated."""
        problem = self.problem
        return sorted(vm for vm in self.placement.on(host) if vm in problem.memory_mb and problem.targets[vm])

    def size_mb(self, vms: Sequence[str]) -> int:
        return sum(self.problem.memory_mb[vm] for vm in vms)


#: VMs of a host that are tried for one that is to leave it, and hosts that each of them is offered.
_LEAVING = 4
_OFFERED = 3
#: So far the making of room goes on from host to host.
_DEPTH = 3


class _Bounds(NamedTuple):
    """What a way keeps to: VMs that stay where they are, and how far the making of room may go on.

    No VM that makes room goes to a host that is closed: room is being made there.
    """

    settled: frozenset[str]
    closed: frozenset[str]
    depth: int


class Bringing:
    """By chance among what looks good: each new try gets another way."""

    def __init__(self, walk: Walk, dice: random.Random) -> None:
        self._walk = walk
        self._dice = dice

    def bring(self, vm: str, host: str, settled: frozenset[str]) -> bool:
        """Whether the VM is there in the end; if not, all is as before. Those that are `settled` stay."""
        return self._bring_vm(vm, host, _Bounds(settled, frozenset(), _DEPTH))

    def hosts_for(self, vm: str, hosts: Collection[str]) -> list[str]:
        """The hosts, those first that take a VM as things are, and then by what they lack."""
        size_mb = self._walk.size_mb(self._walk.placement.closure(vm))
        return self._ranked(size_mb, hosts)

    def _ranked(self, size_mb: int, hosts: Collection[str]) -> list[str]:
        free_mb, chance = self._walk.placement.free_mb, self._dice.random

        def rank(host: str) -> tuple[bool, float]:
            lacking_mb = size_mb - free_mb(host)
            return lacking_mb > 0, chance() * (size_mb + abs(lacking_mb))

        return sorted(sorted(hosts), key=rank)

    def _bring_vm(self, vm: str, host: str, bounds: _Bounds) -> bool:
        walk = self._walk
        if walk.placement.where(vm) == host:
            return True
        for vms in dict.fromkeys(((vm,), walk.placement.closure(vm))):
            if walk.go(vms, host):
                return True
            if not all(host in walk.problem.targets[one] for one in vms) or walk.tries <= 0:
                continue
            mark = walk.mark
            within = _Bounds(bounds.settled.union(vms), bounds.closed | {host}, bounds.depth)
            if (
                self._rivals_leave(vms, host, within)
                and self._clear(host, walk.size_mb(vms), within)
                and walk.go(vms, host)
            ):
                return True
            walk.back_to(mark)
        return False

    def _rivals_leave(self, vms: tuple[str, ...], host: str, bounds: _Bounds) -> bool:
        """Of each goal that limits VMs, as many sets of its other VMs as make a place for these."""
        walk = self._walk
        goals = {goal.number: goal for vm in vms for goal in walk.problem.goals_of.get(vm, ())}
        for goal in goals.values():
            limit = goal.limit
            if limit is None or not goal.binding:
                continue
            there: defaultdict[str, list[str]] = defaultdict(list)
            for rival in goal.rivals(frozenset(vms)):
                if limit.place(walk.placement.where(rival)) == limit.place(host):
                    there[limit.own_set(rival)].append(rival)
            left = len(there) + len(limit.sets(vm for vm in vms if vm in goal.vms)) - limit.most
            for rivals in there.values():
                if left > 0 and all(
                    rival not in bounds.settled and self._leave_host(rival, bounds) for rival in rivals
                ):
                    left -= 1
            if left > 0:
                return False
        return True

    def _clear(self, host: str, needed_mb: int, bounds: _Bounds) -> bool:
        """VMs leave a host until so much of it is free: if any can, those that go where there is room now."""
        free_mb = self._walk.placement.free_mb
        while (lacking_mb := needed_mb - free_mb(host)) > 0:
            leaving = self._leavers(host, lacking_mb, bounds.settled)
            if not any(
                self._leave_host(vm, bounds._replace(depth=depth))
                for depth in dict.fromkeys((0, bounds.depth))
                for vm in leaving
            ):
                return False
        return True

    def _leavers(self, host: str, lacking_mb: int, settled: frozenset[str]) -> list[str]:
        """VMs that had better leave: those that come nearest to making the room alone."""
        walk = self._walk
        there = [vm for vm in walk.residents(host) if vm not in settled]
        sizes = {vm: walk.size_mb(walk.placement.closure(vm)) for vm in there}
        if sum(walk.problem.memory_mb[vm] for vm in there) < lacking_mb:
            return []
        there.sort(key=lambda vm: self._dice.random() * (lacking_mb + 2 * abs(sizes[vm] - lacking_mb)))
        return there[:_LEAVING]

    def _leave_host(self, vm: str, bounds: _Bounds) -> bool:
        """To a host that takes it as things are; else, as far as `depth` goes, to one that makes room."""
        walk = self._walk
        vms = walk.placement.closure(vm)
        if not bounds.settled.isdisjoint(vms):
            return False
        size_mb, free_mb = walk.size_mb(vms), walk.placement.free_mb
        hosts = walk.problem.targets[vm] - bounds.closed
        fitting = [host for host in hosts if free_mb(host) >= size_mb]
        if any(walk.go(vms, host) for host in self._ranked(size_mb, fitting)):
            return True
        shallower = bounds._replace(depth=bounds.depth - 1)
        return bounds.depth > 0 and any(
            self._bring_vm(vm, host, shallower) for host in self._few(self._ranked(size_mb, hosts))
        )

    def _few(self, hosts: Collection[str]) -> Iterator[str]:
        for number, host in enumerate(hosts):
            if number == _OFFERED or self._walk.tries <= 0:
                return
            yield host


#: Hosts that are tried for a VM, or for a group.
_HOSTS = 4


def repaired(walk: Walk, goal: Goal, dice: random.Random) -> bool:
    """Whether less is violated, and a goal satisfied, or nearer to that; if not, all is as before."""
    before, mark = walk.value[:-1], walk.mark
    bringing = Bringing(walk, dice)
    way = _gather if goal.gathers else _to_admitting_hosts
    if (way(walk, bringing, goal, dice) or goal.partly) and walk.value[:-1] < before:
        return True
    walk.back_to(mark)
    return False


def _gather(walk: Walk, bringing: Bringing, goal: Goal, dice: random.Random) -> bool:
    crowd = walk.placement.crowd(goal)
    members = frozenset(goal.vms)
    hosts = sorted(sorted(crowd), key=lambda host: -crowd[host] * dice.random())
    for host in hosts[:_HOSTS]:
        mark = walk.mark
        if _all_come(walk, bringing, goal.vms, host, members):
            return True
        walk.back_to(mark)
    return False


def _all_come(walk: Walk, bringing: Bringing, vms: Iterable[str], host: str, settled: frozenset[str]) -> bool:
    """Again and again, as some can come only once others are there."""
    left = [vm for vm in vms if walk.placement.where(vm) != host]
    while left:
        fewer = [vm for vm in left if not bringing.bring(vm, host, settled)]
        if len(fewer) == len(left):
            return False
        left = fewer
    return True


def _to_admitting_hosts(walk: Walk, bringing: Bringing, goal: Goal, dice: random.Random) -> bool:
    """One VM after another that stands wrong, as long as any does; those that cannot go come last."""
    problem, settled = walk.problem, frozenset(goal.vms)
    wrong = list(goal.constraint.offenders(walk.placement))
    wrong.sort(key=lambda vm: (not problem.targets[vm], dice.random()))
    for vm in wrong:
        if not walk.placement.violated(goal):
            return True
        if vm in goal.constraint.offenders(walk.placement):
            hosts = {host for host in problem.targets[vm] if walk.placement.admits(goal, vm, host)}
            if not _comes_to_one(bringing, vm, hosts, settled) and goal.allowed is not None:
                return False
    return not walk.placement.violated(goal)


def _comes_to_one(bringing: Bringing, vm: str, hosts: Collection[str], settled: frozenset[str]) -> bool:
    return any(bringing.bring(vm, host, settled) for host in bringing.hosts_for(vm, hosts)[:_HOSTS])


#: Sequences with more moves are left as they are.
_MOST = 150


def shortened(problem: Problem, moves: tuple[Move, ...], deadline: Deadline) -> tuple[Move, ...]:
    """Legal moves that leave no more violated, and no more of them."""
    moves = min(moves, _straight(problem, moves), key=lambda one: value(problem, one))
    shorter = True
    while shorter and len(moves) <= _MOST:
        shorter = False
        worth = value(problem, moves)
        for fewer in _variants(moves):
            if deadline.over:
                return moves
            if are_legal(problem, fewer) and value(problem, fewer) < worth:
                moves, shorter = fewer, True
                break
    return moves


def _straight(problem: Problem, moves: Sequence[Move]) -> tuple[Move, ...]:
    """Each VM to its last host at once, as far as it gets there."""
    return tuple(direct_moves(ProblemPlacement(problem), placement_after(problem, moves).moved))


def _variants(moves: tuple[Move, ...]) -> Iterator[tuple[Move, ...]]:
    """Without all moves of a VM; without one of them; and with its last host for the one before."""
    for vms in dict.fromkeys(move.vms for move in moves):
        yield tuple(move for move in moves if move.vms != vms)
    for place, move in enumerate(moves):
        later = next((at for at in range(place + 1, len(moves)) if moves[at].vms == move.vms), None)
        if later is not None:
            yield (*moves[:place], *moves[place + 1 :])
            straight = Move(move.vms, moves[later].host)
            yield (*moves[:place], straight, *moves[place + 1 : later], *moves[later + 1 :])


#: Rounds without any gain after which it is given up; in large clusters, where each takes longer, fewer.
_PATIENCE = 40
_LEAST_PATIENCE = 5
_PATIENT_UP_TO_VMS = 250
#: Migrations that are tried for one rule, and by chance before a round.
_FOR_A_RULE = 400
_SHAKES = 40
#: Rules with more VMs are left as they are.
_MOST_VMS = 60


def improved(problem: Problem, moves: tuple[Move, ...], bound: Value, deadline: Deadline) -> tuple[Move, ...]:
    """Moves that leave less violated than those given, or these; no end is better than `bound`."""
    best, worth = moves, value(problem, moves)
    nowhere = not problem.hosts
    if nowhere or worth[:-1] <= bound[:-1] or not _open_goals(_begun(problem, best, 0).placement):
        return moves
    patience = _patience(len(problem.where))
    idle = 0
    for number in count():
        if worth <= bound or idle == patience or deadline.over:
            break
        walk = _begun(problem, best, number)
        if not _round(walk, random.Random(number), deadline):  # noqa: S311 - dice, not secrets
            idle += 1
            continue
        tried = walk.moves
        if walk.value[:-1] <= worth[:-1]:
            tried = shortened(problem, tried, deadline)
        idle = 0 if value(problem, tried) < worth else idle + 1
        best, worth = min((best, worth), (tried, value(problem, tried)), key=lambda one: one[1])
    return best


def _patience(vms: int) -> int:
    return max(_LEAST_PATIENCE, _PATIENCE * _PATIENT_UP_TO_VMS // max(_PATIENT_UP_TO_VMS, vms))


def _begun(problem: Problem, best: tuple[Move, ...], number: int) -> Walk:
    """Of three rounds one continues from the best, one restarts from a perturbed best, one from the start."""
    walk = Walk(problem)
    if number % 3 < 2:
        for move in best:
            walk.move(move)
    if number % 3 == 1:
        _shake(walk, random.Random(number))  # noqa: S311 - dice, not secrets
    return walk


def _shake(walk: Walk, dice: random.Random) -> None:
    """Some VMs go elsewhere, for no reason but that it might help."""
    vms = sorted(walk.problem.memory_mb)
    walk.tries = _SHAKES
    for vm in dice.sample(vms, min(len(vms), _SHAKES)):
        walk.go(walk.placement.closure(vm), dice.choice(walk.problem.hosts))


def _round(walk: Walk, dice: random.Random, deadline: Deadline) -> bool:
    """Whether any rule was repaired."""
    any_repaired = False
    left = _by_lot(walk, dice)
    while left and not deadline.over:
        repaired_now = [goal for goal in left if _repaired(walk, goal, dice, deadline)]
        any_repaired = any_repaired or bool(repaired_now)
        left = _by_lot(walk, dice) if repaired_now else []
    return any_repaired


def _repaired(walk: Walk, goal: Goal, dice: random.Random, deadline: Deadline) -> bool:
    if deadline.over or not walk.placement.violated(goal):
        return False
    walk.tries = _FOR_A_RULE
    return repaired(walk, goal, dice)


def _by_lot(walk: Walk, dice: random.Random) -> list[Goal]:
    """The more important level first."""
    goals = _open_goals(walk.placement)
    dice.shuffle(goals)
    return sorted(goals, key=lambda goal: goal.level)


def _open_goals(placement: ProblemPlacement) -> list[Goal]:
    """Violated rules that some end could repair, as far as can be seen, and that are not too large to try."""
    return [
        goal
        for goal in placement.violated_goals()
        if (goal.wanted or goal.satisfied)
        and len(goal.vms) <= _MOST_VMS
        and not fixed(placement.problem, goal)
    ]
