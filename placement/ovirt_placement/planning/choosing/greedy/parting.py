"""Spreads a negative group that cannot hold: its VMs leave their crowds for hosts that none of it is on."""

from __future__ import annotations

from ovirt_placement.planning.choosing.draft import Draft
from ovirt_placement.planning.choosing.hosts import EmptiestFirst, best_hosts
from ovirt_placement.planning.problem.goal import Goal

#: Hosts that each VM is offered, and VMs in a row that find none before the group is left as it is.
_WIDTH = 3
_MOST_IN_VAIN = 20


def part(draft: Draft, order: EmptiestFirst, goal: Goal) -> None:
    """One VM after another goes, as long as that counts and costs nothing that matters more."""
    while goal.partly and draft.standing.broken(goal) and _one_leaves(draft, order, goal):
        pass


def _one_leaves(draft: Draft, order: EmptiestFirst, goal: Goal) -> bool:
    crowd = draft.standing.crowd(goal)
    if not set(draft.problem.hosts).difference(crowd):
        return False
    return any(_leaves(draft, order, goal, vm) for vm in _leaving(draft, goal)[:_MOST_IN_VAIN])


def _leaving(draft: Draft, goal: Goal) -> list[str]:
    """Those that share a host and may go: from the largest crowd, and the smallest VMs first."""
    crowd = draft.standing.crowd(goal)
    able = (vm for vm in goal.vms if crowd[draft.where(vm)] > 1 and draft.problem.targets[vm])
    return sorted(able, key=lambda vm: (-crowd[draft.where(vm)], draft.problem.memory_mb[vm], vm))


def _leaves(draft: Draft, order: EmptiestFirst, goal: Goal, vm: str) -> bool:
    block, cost, mark = draft.block(vm), draft.cost, draft.mark
    if len(set(block).intersection(goal.vms)) > 1:
        return False
    for host in best_hosts(draft, order, block, _WIDTH, but=draft.standing.crowd(goal)):
        source = draft.where(vm)
        draft.move(block, host)
        if draft.cost < cost:
            order.update((source, host))
            return True
        draft.back_to(mark)
    return False
