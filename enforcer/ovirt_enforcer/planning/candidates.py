"""Which moves a search looks at: of the VMs that must move, and of those that could make room for them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ovirt_enforcer.planning.goal import Goal
from ovirt_enforcer.planning.posed import Group, Move, Problem
from ovirt_enforcer.planning.standing import Standing

#: In haste, so many hosts are considered for each group or VM.
_NEAREST = 3


def moves_of(movers: Collection[str], problem: Problem, standing: Standing) -> Iterator[Move]:
    """Legal moves of these VMs and of the positive groups that they belong to, the cheapest first."""
    room = [(host, standing.free_mb(host)) for host in problem.hosts]
    for vm in problem.movable:
        if vm in movers:
            memory_mb = problem.memory_mb[vm]
            for host, free_mb in room:
                if free_mb >= memory_mb and standing.legal(vm, host):
                    yield Move((vm,), host)
    for group in problem.mended:
        if group.gathers and not group.vms.isdisjoint(movers):
            closure = tuple(sorted(group.vms))
            yield from (Move(closure, host) for host in problem.hosts if standing.legal_closure(group, host))


def in_the_way(problem: Problem, standing: Standing, members: set[str]) -> set[str]:
    """VMs whose leaving could open a host to a member, or to another VM that is in the way."""
    by_host = standing.movable_by_host()
    waiting = sorted(members)
    found: set[str] = set()
    while waiting:
        vm = waiting.pop()
        for host in problem.allowed[vm]:
            if host != standing.where(vm) and not standing.legal(vm, host):
                blockers = standing.rivals_on(vm, host) or set(by_host.get(host, ()))
                waiting.extend(sorted(blockers - found - members))
                found |= blockers
    return found


def on_nearest_hosts(goal: Goal, standing: Standing) -> set[str]:
    """VMs on the few hosts that lack least to take a broken group, or a member that must leave its rival."""
    by_host = standing.movable_by_host()
    hosts = {
        host
        for group in goal.groups
        if standing.broken(group)
        for host in _nearest_hosts(goal, group, standing)
    }
    return {vm for host in hosts for vm in by_host.get(host, ())}


def _nearest_hosts(goal: Goal, group: Group, standing: Standing) -> list[str]:
    if group.gathers:
        hosts = goal.problem.gathering_hosts[group]
        return sorted(hosts, key=lambda host: (goal.missing_mb_on(host, group, standing), host))[:_NEAREST]
    return [
        host for vm in sorted(group.vms) for host in _nearest_hosts_of_one(goal.problem, group, vm, standing)
    ]


def _nearest_hosts_of_one(problem: Problem, group: Group, vm: str, standing: Standing) -> list[str]:
    empty = problem.allowed[vm] - {standing.where(member) for member in group.vms}
    return sorted(
        empty,
        key=lambda host: (len(standing.rivals_on(vm, host)), -standing.free_mb(host), host),
    )[:_NEAREST]
