"""What tests of plans ask for, and what plans do in words."""

import pytest

from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.planning.strategies import StrategyName

ALL = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))
PARTLY = PlanOptions(repair=frozenset(Repair))
GIB = 1024
#: With the strategies that repair all they can.
EACH = pytest.mark.parametrize("name", [StrategyName.OPTIMAL, StrategyName.GREEDY])


def moves(plan: Plan) -> list[str]:
    """Each step in words: `a b to h2`."""
    return [f"{' '.join(sorted(step.vms))} to {step.target}" for step in plan.steps]
