"""Soft rules that a cluster's policy does not weigh."""

from __future__ import annotations

from ovirt_placement.model import Cluster, SchedulingPolicy
from ovirt_placement.rules.affinity.vm_filter import UNIT_MISSING, missing_units
from ovirt_placement.rules.verdict import Reason
from tests.builders import SOFT_TOGETHER, TOGETHER, cluster, group, host, snapshot, vm

BOTH = group("g", SOFT_TOGETHER, "a b", hosts_rule=SOFT_TOGETHER, hosts="h1")


def missing(policy: Cluster, *groups: object) -> list[str | None]:
    state = snapshot(policy, host("h1"), vm("a"), vm("b"), *groups)
    return [reason.unit for reason in missing_units(state, "a")]


def with_units(**weights: int) -> Cluster:
    return cluster(scheduling_policy=SchedulingPolicy(weights=weights))


def test_each_soft_half_asks_for_its_unit() -> None:
    assert missing(with_units(), BOTH) == ["SoftAffinityWeight", "HostAffinityWeight"]
    assert missing(with_units(SoftAffinityWeight=1), BOTH) == ["HostAffinityWeight"]
    state = snapshot(with_units(), host("h1"), vm("a"), vm("b"), BOTH)
    assert missing_units(state, "a")[0] == Reason(UNIT_MISSING, "g", "a", unit="SoftAffinityWeight")


def test_factor_0_is_as_good_as_missing() -> None:
    assert missing(with_units(SoftAffinityWeight=0, HostAffinityWeight=1), BOTH) == ["SoftAffinityWeight"]


def test_engines_own_weights_do_as_well() -> None:
    policy = cluster(scheduling_policy=SchedulingPolicy(), policy={"vm_affinity_weight": 1})
    assert missing(policy, BOTH) == ["HostAffinityWeight"]


def test_nothing_is_missing_where_the_policy_is_not_known_or_no_soft_rule_asks() -> None:
    assert missing(cluster(), BOTH) == []
    assert missing(with_units(), group("g", TOGETHER, "a b", hosts_rule=SOFT_TOGETHER)) == []
    assert missing(with_units(), group("g", SOFT_TOGETHER, "a")) == []
