"""Where the members of a split positive group can meet: one by one, each comes only to where a peer is."""

from __future__ import annotations

from ovirt_enforcer.planning.problem.goal import Goal
from ovirt_enforcer.planning.problem.problem import Problem


def meeting_hosts(problem: Problem, goal: Goal) -> frozenset[str] | None:
    """Hosts on which all members can come together first; None where every host will do.

    The engine's own filter sees only VMs that share a group. Those that are tied to the others by a VM that
    is down alone never get to a host without one of them, as long as the whole does not stand together.
    """
    found: frozenset[str] | None = None
    seen: set[str] = set()
    for vm in goal.vms:
        if vm in seen:
            continue
        tied = _tied(problem, vm)
        seen |= tied
        if len(tied) > 1:
            hosts = frozenset(problem.where[one] for one in tied)
            found = hosts if found is None else found & hosts
    return found


def _tied(problem: Problem, vm: str) -> set[str]:
    """Running VMs that the engine's filter ties to one, directly or through others that run."""
    found, waiting = {vm}, [vm]
    while waiting:
        for peer in problem.peers.get(waiting.pop(), ()):
            if peer in problem.where and peer not in found:
                found.add(peer)
                waiting.append(peer)
    return found
