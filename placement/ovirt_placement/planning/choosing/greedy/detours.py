"""Which moves of a step towards an end are legal one after the other, and how many are not."""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_placement.planning.choosing.draft import Draft
from ovirt_placement.planning.problem.goal import Goal, Shape


def detours(draft: Draft, mark: int, moves: Mapping[str, str]) -> int:
    """How many of the moves no plain order makes legal, from how things stood at the mark."""
    with draft.as_at(mark):
        waiting = dict(moves)
        progress = True
        while waiting and progress:
            progress = False
            for vm, host in moves.items():
                if vm in waiting and (going := _goes(draft, vm, host, waiting)):
                    draft.move(going, host)
                    for one in going:
                        del waiting[one]
                    progress = True
    return len(waiting)


def _goes(draft: Draft, vm: str, host: str, waiting: Mapping[str, str]) -> tuple[str, ...]:
    """The VMs that may go to the host with this one now: none, it alone, or its whole group."""
    if draft.standing.legal(vm, host):
        return (vm,)
    for goal in draft.problem.goals_of.get(vm, ()):
        if _moves_whole(goal, host, waiting) and draft.standing.legal_closure(goal, host):
            return goal.vms
    return ()


def _moves_whole(goal: Goal, host: str, waiting: Mapping[str, str]) -> bool:
    return goal.hard and goal.shape is Shape.GATHER and all(waiting.get(vm) == host for vm in goal.vms)
