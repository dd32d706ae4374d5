"""Where the members of a split positive group can meet: one by one, each comes only to where a peer is."""

from __future__ import annotations

from ovirt_placement.planning.problem.goal import Goal
from ovirt_placement.planning.problem.problem import Problem
from ovirt_placement.planning.problem.reach import circles, places


def meeting_hosts(problem: Problem, goal: Goal) -> frozenset[str] | None:
    """Hosts on which all members can come together first; None where every host will do.

    The engine's own filter sees only VMs that share a group. Those that are tied to the others by a VM that
    is down alone never get to a host without one of them, as long as the whole does not stand together.
    """
    tied = circles(problem, goal)[1:]
    return frozenset.intersection(*(places(problem, circle) for circle in tied)) if tied else None
