"""Hard negative groups that cannot be satisfied: left alone, or spread as far as possible."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pytest

from ovirt_placement.model import AffinityRule, Snapshot
from ovirt_placement.planning import strategies
from ovirt_placement.planning.plan import Deadline, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.planning.strategies import StrategyName
from tests.builders import APART, CLUSTER, SOFT_APART, TOGETHER, group, host, snapshot, vm

PARTLY = PlanOptions(repair=frozenset(Repair))
#: Far above how often it takes for planning to ask for its deadline where nothing is searched.
LOOKS = 50

each_strategy = pytest.mark.parametrize("strategy", [StrategyName.OPTIMAL, StrategyName.GREEDY])


def crowds(*counts: int, rule: AffinityRule = APART) -> Snapshot:
    """Hosts with this many VMs each, all in one group."""
    vms = [
        vm(f"{place}-{number}", f"h{place}")
        for place, vms_there in enumerate(counts)
        for number in range(vms_there)
    ]
    hosts = [host(f"h{place}", free_mb=65536) for place in range(len(counts))]
    return snapshot(*hosts, *vms, group("g", rule, " ".join(one.id for one in vms)))


def planned(state: Snapshot, strategy: StrategyName, options: PlanOptions = PARTLY) -> Plan:
    return make_plan(state, CLUSTER, options=options, strategy=strategies.strategy(strategy))


def ends(state: Snapshot, plan: Plan) -> list[int]:
    """How many VMs each host ends with, the most first."""
    where = {one.id: one.host for one in state.vms} | {
        one: step.target for step in plan.steps for one in step.vms
    }
    return sorted(Counter(where.values()).values(), reverse=True)


@each_strategy
@pytest.mark.parametrize(
    ("counts", "end"),
    [
        ((4, 2, 0, 0), [2, 2, 1, 1]),
        ((6, 0, 0, 0), [3, 1, 1, 1]),
        # Every host has one of them: the engine lets none come to any.
        ((3, 1, 1, 1), [3, 1, 1, 1]),
    ],
)
def test_vms_leave_the_largest_crowds_for_hosts_without_any(
    strategy: StrategyName, counts: tuple[int, ...], end: list[int]
) -> None:
    state = crowds(*counts)
    plan = planned(state, strategy)
    assert ends(state, plan) == end
    assert plan.migrations == 2 * (counts[2] == 0) + (counts[0] == 6)
    assert [rule.groups for rule in plan.remaining] == [("g",)]


@each_strategy
@pytest.mark.parametrize("rule", [APART, SOFT_APART], ids=["not asked", "soft"])
def test_what_cannot_hold_is_left_alone_where_nobody_asks(strategy: StrategyName, rule: object) -> None:
    options = PARTLY if rule is SOFT_APART else PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))
    assert planned(crowds(4, 2, 0, 0, rule=rule), strategy, options).steps == ()


@each_strategy
def test_no_other_rule_is_violated_for_it(strategy: StrategyName) -> None:
    state = snapshot(
        *(host(name, free_mb=65536) for name in ("h1", "h2")),
        *(vm(name, "h1") for name in "abc"),
        vm("friend-of-a", "h1"), vm("friend-of-b", "h1", migratable=False), vm("twin-of-c", "h2"),
        group("apart", APART, "a b c"),
        group("a", TOGETHER, "a friend-of-a"),
        group("b", TOGETHER, "b friend-of-b"),
        group("c", APART, "c twin-of-c"),
    )  # fmt: skip
    (step,) = planned(state, strategy).steps
    assert (sorted(step.vms), step.target) == (["a", "friend-of-a"], "h2")


@each_strategy
@pytest.mark.parametrize("hosts", [50, 900])
def test_that_a_thousand_vms_cannot_be_spread_is_seen_at_once(strategy: StrategyName, hosts: int) -> None:
    state = crowds(*[250] * 4, *[0] * (hosts - 4))
    looks = count(1)
    clock = Deadline(lambda: LOOKS - next(looks))
    plan = make_plan(state, CLUSTER, strategy=strategies.strategy(strategy), explained=False, deadline=clock)
    assert next(looks) < LOOKS
    assert plan.proven
    assert plan.steps == ()


@pytest.mark.system
@each_strategy
def test_a_thousand_vms_are_spread_over_the_hosts_that_there_are(strategy: StrategyName) -> None:
    state = crowds(*[250] * 4, *[0] * 46)
    plan = planned(state, strategy)
    assert plan.migrations == 46
    assert max(ends(state, plan)) == 239
