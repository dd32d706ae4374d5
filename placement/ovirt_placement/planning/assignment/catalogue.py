"""Every strategy once, and which of them there are: the optimal one needs OR-Tools, which is an extra."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec

from ovirt_placement.planning.assignment.choice import Strategy
from ovirt_placement.planning.assignment.greedy.strategy import Greedy
from ovirt_placement.planning.assignment.random import Random
from ovirt_service.errors import UserError


class StrategyName(StrEnum):
    """As the configuration and `--strategy` name them."""

    OPTIMAL = "optimal"
    GREEDY = "greedy"
    RANDOM = "random"


#: Whether the extra `planner` is installed.
OPTIMAL_IS_THERE = find_spec("ortools") is not None

#: What is taken where nobody asks for another.
DEFAULT = StrategyName.OPTIMAL if OPTIMAL_IS_THERE else StrategyName.GREEDY


class NoOptimalStrategy(UserError):
    """The optimal strategy was asked for, and OR-Tools is not installed."""

    def __init__(self) -> None:
        super().__init__("the strategy optimal needs OR-Tools: install ovirt-placement[planner]")


def strategy(name: StrategyName | None = None, seed: int | None = None) -> Strategy:
    """The strategy of that name, or the best that there is; one that draws lots takes the seed, or draws one.

    Raises `NoOptimalStrategy`.
    """
    name = name or DEFAULT
    if name is StrategyName.OPTIMAL:
        if not OPTIMAL_IS_THERE:
            raise NoOptimalStrategy
        # Only here, so that all else works without OR-Tools.
        from ovirt_placement.planning.assignment.optimal.strategy import Optimal

        return Optimal()
    return Greedy() if name is StrategyName.GREEDY else Random(seed)
