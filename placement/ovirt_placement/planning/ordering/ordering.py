"""From a choice to an order: moves whose every state on the way is legal, each with those it waits for."""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.ordering.dependencies import waits
from ovirt_placement.planning.ordering.order import Order, OrderedMove
from ovirt_placement.planning.ordering.sequence import sequence
from ovirt_placement.planning.problem.problem import Problem


def order(problem: Problem, where: Mapping[str, str], deadline: Deadline) -> Order:
    """The moves that bring VMs to their hosts in `where`; all others stay, unless they must make room.

    Those that made room stay where they went, if no rule minds and no headroom; else they come back. VMs
    that get nowhere near their hosts are named, and all others are ordered.
    """
    found = sequence(problem, where, deadline)
    ordered = map(OrderedMove, found.moves, waits(problem, found.moves))
    return Order(tuple(ordered), found.stuck, found.proven)
