"""A rule that is not repaired has a reason, also where a gate or a refusal of the engine is the reason."""

from __future__ import annotations

from ovirt_enforcer.actions.migrate_vm.held_back import with_held_back
from ovirt_placement.planning.obstacles import Obstacle, ObstacleKind
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from tests.builders import APART, CLUSTER, group, host, snapshot, vm

STATE = snapshot(
    host("h1"),
    host("h2"),
    vm("a", "h1", name="web1"),
    vm("b", "h1", name="web2"),
    group("g", APART, "a b", name="web"),
)
REFUSED = {("a", "h2"): "the engine refused it", ("b", "h2"): "the engine refused it, too"}


def test_of_a_rule_that_a_gate_spares() -> None:
    plan = make_plan(STATE, CLUSTER, options=PlanOptions(spared=frozenset({"g"})))
    (rule,) = with_held_back(plan, STATE, {"g": "web is in mode observe"}, {}).remaining
    assert rule.obstacles == (Obstacle(ObstacleKind.HELD, groups=("g",), words="web is in mode observe"),)


def test_of_targets_that_the_engine_refused() -> None:
    plan = make_plan(STATE, CLUSTER, refused=REFUSED.keys())
    (rule,) = with_held_back(plan, STATE, {}, REFUSED).remaining
    held = [one for one in rule.obstacles if one.kind is ObstacleKind.HELD]
    assert [(one.vms, one.hosts, one.words) for one in held] == [
        (("a",), ("h2",), "web1: the engine refused it"),
        (("b",), ("h2",), "web2: the engine refused it, too"),
    ]


def test_nothing_is_added_to_what_is_repaired() -> None:
    plan = make_plan(STATE, CLUSTER, refused=[("a", "h2")])
    assert with_held_back(plan, STATE, {}, {("a", "h2"): "the engine refused it"}) == plan
    assert plan.steps
