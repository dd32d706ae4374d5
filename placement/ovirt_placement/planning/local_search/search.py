"""One restart after the other from another point: the best is kept, as long as time and patience last."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count

from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.local_search.bringing import Bringing
from ovirt_placement.planning.local_search.walk import Walk
from ovirt_placement.planning.lower_bound import fixed
from ovirt_placement.planning.ordering.direct import direct_moves
from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.placement import ProblemPlacement, are_legal
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.planning.value import Value, value

#: Hosts that are tried for a VM, or for a group.
_HOSTS = 4


def repaired(walk: Walk, goal: Goal, dice: random.Random) -> bool:
    """Whether a violated goal is satisfied now, and less is violated; if not, all is as before."""
    before, mark = walk.value[:-1], walk.mark
    bringing = Bringing(walk, dice)
    way = _gather if goal.gathers else _to_admitting_hosts
    if way(walk, bringing, goal, dice) and walk.value[:-1] < before:
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
    end = ProblemPlacement(problem)
    for move in moves:
        end.move(move.vms, move.host)
    return tuple(direct_moves(ProblemPlacement(problem), end.moved))


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
        walk.follow(best)
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
