"""What tests of plans ask for, and what plans do in words."""

import pytest

from ovirt_placement.model import SchedulingPolicy, Snapshot
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.planning.strategies import StrategyName
from tests.builders import CLUSTER, Part, cluster, host, key, node_key
from tests.placement.rules.placement_keys.nodes import keyed

ALL = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))
PARTLY = PlanOptions(repair=frozenset(Repair))
GIB = 1024
#: With the strategies that repair all they can.
EACH = pytest.mark.parametrize("name", [StrategyName.OPTIMAL, StrategyName.GREEDY])

BY_KEYS = cluster(scheduling_policy=SchedulingPolicy(filters=("PlacementKeyFilter",)))


def hating(hosts: str, *parts: Part, policy: Part = BY_KEYS) -> Snapshot:
    """Three hosts, where the operator keeps all VMs off some by keys."""
    on_cluster = key("SAN", 1.0, -100.0, "cluster", resource=CLUSTER)
    on_hosts = (node_key(one, "SAN", float(one in hosts)) for one in ("h1", "h2", "h3"))
    three = host("h1"), host("h2", free_mb=20000), host("h3", free_mb=10000)
    return keyed(policy, *three, *parts, keys=(on_cluster, *on_hosts))


def moves(plan: Plan) -> list[str]:
    """Each step in words: `a b to h2`."""
    return [f"{' '.join(sorted(step.vms))} to {step.target}" for step in plan.steps]
