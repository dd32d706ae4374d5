"""Limits that cannot be kept wholly are kept as far as they can be, and the next plan has nothing to do."""

from collections import Counter
from functools import reduce
from itertools import count
from typing import Any

import pytest

from ovirt_placement.answers.plans import obstacle_text
from ovirt_placement.model import AffinityRule, RuleDomain, Snapshot
from ovirt_placement.planning.plan import NEVER, Deadline, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from ovirt_placement.planning.steps import apply
from ovirt_placement.planning.strategies import StrategyName, strategy
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    Part,
    group,
    host,
    rule,
    snapshot,
    vm,
)
from tests.placement.planning.plans import ALL, EACH, PARTLY, moves

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


ABOVE = "it remains above its limit of 3 by 5 (before the plan 9)"
MUST_MOVE = "2 VMs must still move for it (before the plan 4)"


@EACH
@pytest.mark.parametrize(
    ("limit", "migrations", "text"),
    [
        ({"kind": "capacity", "hosts": "h1", "most": 3, "counted": "vcpus"}, 2, ABOVE),
        ({"kind": "at_most_per_host", "vms": "a b c d e f", "most": 2}, 2, MUST_MOVE),
        ({"kind": "at_most_per_domain", "vms": "a b c d e f", "most": 2, "domains": RACKS}, 2, MUST_MOVE),
        ({"kind": "spread", "vms": "a b c d e f", "max_skew": 1, "domains": RACKS}, 2, MUST_MOVE),
        (
            {"kind": "minimum_domains", "vms": "a c d e f", "least": 3, "domains": RACKS}, 1,
            "1 VM must still move for it (before the plan 2)",
        ),
        (
            {"kind": "exclusive_hosts", "vms": "f", "hosts": "h1"}, 2,
            "3 VMs must still move for it (before the plan 5)",
        ),
        (
            {"kind": "separate", "vms": "a b d", "other_vms": "c e f"}, 2,
            "1 VM must still move for it (before the plan 3)",
        ),
    ],
)  # fmt: skip
def test_each_limit_is_kept_as_far_as_it_can_be(
    name: StrategyName, limit: dict[str, Any], migrations: int, text: str
) -> None:
    state = held(rule("r", **limit))
    plan = planned(state, name)
    assert (plan.migrations, said(plan, state)) == (migrations, [text])


@EACH
def test_no_more_vms_leave_than_make_it_less(name: StrategyName) -> None:
    """Two of six VMs have a host of their own; who else goes elsewhere, is one too many there."""
    limit = rule("r", "at_most_per_host", "a b c d e f", most=1)
    plan = planned(snapshot(*map(host, HOSTS), *(vm(one, "h1") for one in "abcdef"), limit), name)
    assert plan.migrations == 2


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
def test_a_group_goes_at_once_from_one_exclusive_host_to_another(name: StrategyName) -> None:
    """No step violates that rule more, and the rule about hosts is repaired."""
    asked = group("on", vms="a b", hosts_rule=TOGETHER, hosts="h2"), group("as-one", TOGETHER, "a b")
    closed = rule("closed", "exclusive_hosts", "x", hosts="h1 h2")
    state = snapshot(host("h1"), host("h2"), *(vm(one, "h1") for one in "abx"), *asked, closed)
    plan = planned(state, name)
    assert (moves(plan), plan.proven) == (["a b to h2"], True)


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


#: Far above how often it takes for planning to ask for its deadline where nothing is searched.
LOOKS = 50


def crowds(*counts: int, rule: AffinityRule = APART) -> Snapshot:
    """Hosts with this many VMs each, all in one group."""
    vms = [
        vm(f"{place}-{number}", f"h{place}")
        for place, vms_there in enumerate(counts)
        for number in range(vms_there)
    ]
    hosts = [host(f"h{place}", free_mb=65536) for place in range(len(counts))]
    return snapshot(*hosts, *vms, group("g", rule, " ".join(one.id for one in vms)))


def spread_out(state: Snapshot, name: StrategyName, options: PlanOptions = PARTLY) -> Plan:
    return make_plan(state, CLUSTER, options=options, strategy=strategy(name))


def ends(state: Snapshot, plan: Plan) -> list[int]:
    """How many VMs each host ends with, the most first."""
    where = {one.id: one.host for one in state.vms} | {
        one: step.target for step in plan.steps for one in step.vms
    }
    return sorted(Counter(where.values()).values(), reverse=True)


@EACH
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
    name: StrategyName, counts: tuple[int, ...], end: list[int]
) -> None:
    state = crowds(*counts)
    plan = spread_out(state, name)
    assert ends(state, plan) == end
    assert plan.migrations == 2 * (counts[2] == 0) + (counts[0] == 6)
    assert [rule.groups for rule in plan.remaining] == [("g",)]


@EACH
@pytest.mark.parametrize("rule", [APART, SOFT_APART], ids=["not asked", "soft"])
def test_what_cannot_hold_is_left_alone_where_nobody_asks(name: StrategyName, rule: object) -> None:
    options = PARTLY if rule is SOFT_APART else ALL
    assert spread_out(crowds(4, 2, 0, 0, rule=rule), name, options).steps == ()


@EACH
def test_no_other_rule_is_violated_for_it(name: StrategyName) -> None:
    state = snapshot(
        *(host(name, free_mb=65536) for name in ("h1", "h2")),
        *(vm(name, "h1") for name in "abc"),
        vm("friend-of-a", "h1"), vm("friend-of-b", "h1", migratable=False), vm("twin-of-c", "h2"),
        group("apart", APART, "a b c"),
        group("a", TOGETHER, "a friend-of-a"),
        group("b", TOGETHER, "b friend-of-b"),
        group("c", APART, "c twin-of-c"),
    )  # fmt: skip
    (step,) = spread_out(state, name).steps
    assert (sorted(step.vms), step.target) == (["a", "friend-of-a"], "h2")


@EACH
@pytest.mark.parametrize("hosts", [50, 900])
def test_that_a_thousand_vms_cannot_be_spread_is_seen_at_once(name: StrategyName, hosts: int) -> None:
    state = crowds(*[250] * 4, *[0] * (hosts - 4))
    looks = count(1)
    clock = Deadline(lambda: LOOKS - next(looks))
    plan = make_plan(state, CLUSTER, strategy=strategy(name), explained=False, deadline=clock)
    assert next(looks) < LOOKS
    assert (plan.proven, plan.steps) == (True, ())


@pytest.mark.system
@EACH
def test_a_thousand_vms_are_spread_over_the_hosts_that_there_are(name: StrategyName) -> None:
    state = crowds(*[250] * 4, *[0] * 46)
    plan = spread_out(state, name)
    assert plan.migrations == 46
    assert max(ends(state, plan)) == 239
