"""Mends one rule from where a walk has led: each VM that stands wrong is brought to where the rule holds."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable

from ovirt_placement.planning.problem.goal import Goal, Shape
from ovirt_placement.planning.stepwise.bringing import Bringing
from ovirt_placement.planning.stepwise.walk import Walk

#: Hosts that are tried for a VM, or for a group.
_HOSTS = 4


def mended(walk: Walk, goal: Goal, dice: random.Random) -> bool:
    """Whether a broken goal holds now, and less is broken than before; if not, all is as before."""
    before, mark = walk.value[:-1], walk.mark
    bringing = Bringing(walk, dice)
    ways = {Shape.GATHER: _gather, Shape.SPREAD: _spread, Shape.HOSTS: _to_hosts}
    way = ways.get(goal.shape)
    if way is not None and way(walk, bringing, goal, dice) and walk.value[:-1] < before:
        return True
    walk.back_to(mark)
    return False


def _gather(walk: Walk, bringing: Bringing, goal: Goal, dice: random.Random) -> bool:
    crowd = walk.standing.crowd(goal)
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
    left = [vm for vm in vms if walk.standing.where(vm) != host]
    while left:
        fewer = [vm for vm in left if not bringing.bring(vm, host, settled)]
        if len(fewer) == len(left):
            return False
        left = fewer
    return True


def _spread(walk: Walk, bringing: Bringing, goal: Goal, dice: random.Random) -> bool:
    """Of each crowd one stays, a VM that cannot go if there is one."""
    problem, settled = walk.problem, frozenset(goal.vms)
    for host, count in dict(walk.standing.crowd(goal)).items():
        here = [vm for vm in goal.vms if walk.standing.where(vm) == host]
        here.sort(key=lambda vm: (not problem.targets[vm], dice.random()))
        for vm in here[: count - 1]:
            free = problem.targets[vm].difference(walk.standing.crowd(goal))
            if not _comes_to_one(bringing, vm, free, settled):
                return False
    return True


def _to_hosts(walk: Walk, bringing: Bringing, goal: Goal, dice: random.Random) -> bool:
    settled = frozenset(goal.vms)
    wrong = [vm for vm in goal.vms if not goal.right(walk.standing.where(vm))]
    dice.shuffle(wrong)
    return all(
        _comes_to_one(bringing, vm, {one for one in walk.problem.targets[vm] if goal.right(one)}, settled)
        for vm in wrong
    )


def _comes_to_one(bringing: Bringing, vm: str, hosts: Collection[str], settled: frozenset[str]) -> bool:
    return any(bringing.bring(vm, host, settled) for host in bringing.hosts_for(vm, hosts)[:_HOSTS])
