"""Limits that cannot be kept wholly are kept as far as they can be, and the next plan has nothing to do."""

from __future__ import annotations

from functools import reduce

import pytest

from ovirt_placement.answers.plans.plan import obstacle_text
from ovirt_placement.model import RuleDomain, Snapshot
from ovirt_placement.planning.plan import NEVER, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.planning.verification import apply
from tests.builders import CLUSTER, SOFT_TOGETHER, Part, group, host, rule, snapshot, vm

EACH = pytest.mark.parametrize("name", [StrategyName.OPTIMAL, StrategyName.GREEDY])
ALL = PlanOptions(repair=frozenset({Repair.HARD, Repair.SOFT}))
HOSTS = ("h1", "h2", "h3")
RACKS = tuple(RuleDomain(name=f"r-{name}", hosts=(name,)) for name in HOSTS)


def planned(state: Snapshot, name: StrategyName) -> Plan:
    """A plan after which the next one has no step."""
    plan = make_plan(state, CLUSTER, options=ALL, strategy=strategy(name), deadline=NEVER)
    end = reduce(apply, plan.steps, state)
    again = make_plan(end, CLUSTER, options=ALL, strategy=strategy(name), deadline=NEVER, explained=False)
    assert again.steps == ()
    return plan


def said(plan: Plan, state: Snapshot) -> list[str]:
    """What is said first of each rule that remains."""
    return [obstacle_text(one.obstacles[0], state) for one in plan.remaining]


def held(*rules: Part, hosts: int = 3) -> Snapshot:
    """Six VMs on the first host, of which two may leave it."""
    names = [f"h{number}" for number in range(1, hosts + 1)]
    return snapshot(
        *map(host, names), *(vm(one, "h1", vcpus=2, migratable=one in "ab") for one in "abcdef"), *rules
    )


@EACH
@pytest.mark.parametrize(
    ("limit", "migrations", "text"),
    [
        (
            rule("r", "capacity", hosts="h1", most=3, counted="vcpus"),
            2,
            "it remains above its limit of 3 by 5 (before the plan 9)",
        ),
        (
            rule("r", "at_most_per_host", "a b c d e f", most=2),
            2,
            "2 VMs must still move for it (before the plan 4)",
        ),
        (
            rule("r", "at_most_per_domain", "a b c d e f", most=2, domains=RACKS),
            2,
            "2 VMs must still move for it (before the plan 4)",
        ),
        (
            rule("r", "spread", "a b c d e f", max_skew=1, domains=RACKS),
            2,
            "2 VMs must still move for it (before the plan 4)",
        ),
        (
            rule("r", "minimum_domains", "a c d e f", least=3, domains=RACKS),
            1,
            "1 VM must still move for it (before the plan 2)",
        ),
        (
            rule("r", "exclusive_hosts", "f", hosts="h1"),
            2,
            "3 VMs must still move for it (before the plan 5)",
        ),
        (
            rule("r", "separate", "a b d", other_vms="c e f"),
            2,
            "1 VM must still move for it (before the plan 3)",
        ),
    ],
)
def test_each_limit_is_kept_as_far_as_it_can_be(
    name: StrategyName, limit: Part, migrations: int, text: str
) -> None:
    state = held(limit)
    plan = planned(state, name)
    assert plan.migrations == migrations
    assert said(plan, state) == [text]


@EACH
def test_no_more_vms_leave_than_make_it_less(name: StrategyName) -> None:
    """Two of six VMs have a host of their own; who else goes elsewhere, is one too many there."""
    state = snapshot(*map(host, HOSTS), *(vm(one, "h1") for one in "abcdef"))
    plan = planned(snapshot_with(state, rule("r", "at_most_per_host", "a b c d e f", most=1)), name)
    assert plan.migrations == 2


def snapshot_with(state: Snapshot, *parts: Part) -> Snapshot:
    return snapshot(*state.hosts, *state.vms, *parts)


@EACH
def test_two_capacities_and_a_host_in_maintenance(name: StrategyName) -> None:
    vms = [vm(f"{at}-{size}", at, vcpus=size, migratable=size < 8) for at in ("h1", "h2") for size in (2, 8)]
    limits = [rule(f"limit-{at}", "capacity", hosts=at, most=5, counted="vcpus") for at in ("h1", "h2")]
    away = host("h4", status="maintenance")
    state = snapshot(*map(host, HOSTS), away, *vms, *limits)
    plan = planned(state, name)
    assert [step.target for step in plan.steps] == ["h3", "h3"]
    text = "it remains above its limit of 5 by 3 (before the plan 5)"
    many = "; of 2 capacities that were exceeded: 0 below now, 2 still above"
    assert said(plan, state) == [text + many, text + many]


@EACH
def test_no_soft_rule_is_violated_for_less(name: StrategyName) -> None:
    near = group("near", SOFT_TOGETHER, "a c")
    plan = planned(held(rule("r", "capacity", hosts="h1", most=3, counted="vcpus"), near), name)
    assert [step.vms for step in plan.steps] == [("b",)]


@EACH
def test_of_two_limits_that_cannot_both_be_kept_none_is_given_up_again(name: StrategyName) -> None:
    """One that may be violated on the way is not violated for another, which is violated for it in turn."""
    rules = [
        rule(f"limit-{at}", "capacity", hosts=at, most=2 + extra, counted="vcpus", continuous=False)
        for at, extra in (("h1", 0), ("h2", 1))
    ]
    state = snapshot(host("h1"), host("h2"), *(vm(one, "h1", vcpus=2) for one in "abc"), *rules)
    plan = planned(state, name)
    assert [one.hard for one in plan.remaining] == [True]
