"""Which moves of a step towards an end are legal one after the other, and how many are not."""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_placement.planning.assignment.assignment import Assignment


def detours(assignment: Assignment, mark: int, moves: Mapping[str, str]) -> int:
    """How many of the moves no plain order makes legal, from how things stood at the mark."""
    with assignment.as_at(mark):
        waiting = dict(moves)
        progress = True
        while waiting and progress:
            progress = False
            for vm, host in moves.items():
                if vm in waiting and (going := _goes(assignment, vm, host, waiting)):
                    assignment.move(going, host)
                    for one in going:
                        del waiting[one]
                    progress = True
    return len(waiting)


def _goes(assignment: Assignment, vm: str, host: str, waiting: Mapping[str, str]) -> tuple[str, ...]:
    """The VMs that may go to the host with this one now: none, it alone, or its closure."""
    if assignment.placement.legal(vm, host):
        return (vm,)
    vms = assignment.placement.closure(vm)
    bound = len(vms) > 1 and all(waiting.get(one) == host for one in vms)
    return vms if bound and assignment.placement.legal_closure(vms, host) else ()
