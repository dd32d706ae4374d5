"""Repairs one rule from where a walk has led: moves each VM that stands wrong."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable

from ovirt_placement.planning.local_search.bringing import Bringing
from ovirt_placement.planning.local_search.walk import Walk
from ovirt_placement.planning.problem.goal import Goal

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
