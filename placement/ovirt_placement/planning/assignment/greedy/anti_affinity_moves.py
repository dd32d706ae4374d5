"""Spreads a negative group that cannot be satisfied: its VMs leave crowds for hosts without members."""

from __future__ import annotations

from ovirt_placement.planning.assignment.assignment import Assignment
from ovirt_placement.planning.assignment.hosts import EmptiestFirst, best_hosts
from ovirt_placement.planning.problem.goal import Goal

#: Hosts that each VM is offered, and VMs in a row that find none before the group is left as it is.
_WIDTH = 3
_MOST_IN_VAIN = 20


def part(assignment: Assignment, order: EmptiestFirst, goal: Goal) -> None:
    """One VM after another goes, as long as that counts and costs nothing that matters more."""
    while goal.partly and assignment.placement.violated(goal) and _one_leaves(assignment, order, goal):
        pass


def _one_leaves(assignment: Assignment, order: EmptiestFirst, goal: Goal) -> bool:
    crowd = assignment.placement.crowd(goal)
    if not set(assignment.problem.hosts).difference(crowd):
        return False
    return any(_leaves(assignment, order, goal, vm) for vm in _leaving(assignment, goal)[:_MOST_IN_VAIN])


def _leaving(assignment: Assignment, goal: Goal) -> list[str]:
    """Those that share a host and may go: from the largest crowd, and the smallest VMs first."""
    crowd = assignment.placement.crowd(goal)
    able = (vm for vm in goal.vms if crowd[assignment.where(vm)] > 1 and assignment.problem.targets[vm])
    return sorted(able, key=lambda vm: (-crowd[assignment.where(vm)], assignment.problem.memory_mb[vm], vm))


def _leaves(assignment: Assignment, order: EmptiestFirst, goal: Goal, vm: str) -> bool:
    block, cost, mark = assignment.block(vm), assignment.cost, assignment.mark
    if len(set(block).intersection(goal.vms)) > 1:
        return False
    for host in best_hosts(assignment, order, block, _WIDTH, but=assignment.placement.crowd(goal)):
        source = assignment.where(vm)
        assignment.move(block, host)
        if assignment.cost < cost:
            order.update((source, host))
            return True
        assignment.back_to(mark)
    return False
