"""A positive group whose VMs are to be in one failure domain leaves it whole, by one request."""

from __future__ import annotations

import pytest

from ovirt_placement.model import RuleDomain
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.strategies import StrategyName, strategy
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.placement_rules.units import filter_hosts
from tests.builders import APART, CLUSTER, TOGETHER, group, host, rule, snapshot, vm

HOSTS = (host("h0"), host("h1"), host("h2"))
RULE = rule(
    "one-rack",
    "same_domain",
    "a b",
    domains=(RuleDomain(name="r0", hosts=("h0",)), RuleDomain(name="r1", hosts=("h1", "h2"))),
)
OFF_H0 = group("off", TOGETHER, "a b", hosts_rule=APART, hosts="h0")
TIED = snapshot(*HOSTS, vm("a", "h0"), vm("b", "h0"), OFF_H0, RULE)
NOT_TIED = snapshot(*HOSTS, vm("a", "h0"), vm("b", "h0"), RULE)


@pytest.mark.parametrize("name", [StrategyName.OPTIMAL, StrategyName.GREEDY])
def test_a_plan_takes_it_to_the_other_domain(name: StrategyName) -> None:
    plan = make_plan(TIED, CLUSTER, strategy=strategy(name))
    (step,) = plan.steps
    assert step.vms == ("a", "b")
    assert step.target in ("h1", "h2")
    assert plan.proven
    assert plan.remaining == ()


def test_the_engine_is_let_pass_that_asks_for_one_vm_and_moves_the_group() -> None:
    found = filter_hosts(TIED, Request(("a",), ("h1", "h2"), as_engine=True))
    assert [one.accepted for one in found] == [True, True]


def test_a_vm_that_no_group_ties_to_its_peers_stays_in_the_domain() -> None:
    found = filter_hosts(NOT_TIED, Request(("a",), ("h1", "h2"), as_engine=True))
    assert [one.accepted for one in found] == [False, False]


def test_a_request_for_all_is_let_pass_only_where_no_other_member_stays() -> None:
    stays = snapshot(
        *HOSTS, *(vm(name, "h0") for name in "abc"), rule("r", "same_domain", "a b c", domains=RULE.domains)
    )
    found = filter_hosts(stays, Request(("a", "b"), ("h1",)))
    assert [one.accepted for one in found] == [False]
    found = filter_hosts(NOT_TIED, Request(("a", "b"), ("h1",)))
    assert [one.accepted for one in found] == [True]
