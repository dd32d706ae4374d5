"""What ordering answers: moves, each with those it must wait for."""

from __future__ import annotations

from dataclasses import dataclass

from ovirt_placement.planning.problem.problem import Move


@dataclass(frozen=True, slots=True)
class OrderedMove:
    move: Move
    #: The places, in the order, of the moves that must have ended before this one begins; all are earlier.
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """Moves in a sequence that is legal one by one, and at once as far as `after` lets them."""

    moves: tuple[OrderedMove, ...]
    #: VMs of the choice that do not get to their host: no legal way was found, or they were to go only for
    #: the sake of one that does not.
    stuck: frozenset[str]
    #: No legal way with fewer migrations leads all VMs to their hosts; where some are stuck, none leads there
    #: at all, and none leaves less violated.
    proven: bool
