"""Violated groups of a running cluster: the choices one by one, then the engine's flag as an oracle."""

from __future__ import annotations

from hypothesis import given

from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.constraints import Together
from ovirt_placement.rules.affinity.filters import filter_by_hosts, filter_by_vms
from ovirt_placement.rules.catalogue import Location, Violation, find_violations
from ovirt_placement.rules.elements.verdict import Request
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    group,
    host,
    label,
    snapshot,
    vm,
)
from tests.placement.rules.strategies import HOSTS, snapshots

THREE_HOSTS = (host("h1"), host("h2"), host("h3"))


def violated(state: Snapshot) -> list[tuple[str, ...]]:
    return [violation.groups for violation in find_violations(state, CLUSTER)]


def test_split_positive_group_names_who_is_where_and_the_minority() -> None:
    state = snapshot(
        *THREE_HOSTS,
        vm("a", "h1"),
        vm("b", "h2"),
        vm("c", "h2"),
        vm("d"),
        group("g", TOGETHER, "a b c d", priority=3.0),
    )
    assert find_violations(state, CLUSTER) == (
        Violation(
            Together(
                groups=("g",),
                vms=("a", "b", "c", "d"),
                hard=True,
                priority=3.0,
                members_of={"g": ("a", "b", "c", "d")},
            ),
            violated=("g",),
            locations=(
                Location("a", "h1", host_up=True),
                Location("b", "h2", host_up=True),
                Location("c", "h2", host_up=True),
            ),
            offenders=("a",),
        ),
    )


def test_crowded_negative_group_names_those_that_share_a_host() -> None:
    state = snapshot(*THREE_HOSTS, vm("a", "h1"), vm("b", "h1"), vm("c", "h2"), group("g", APART, "a b c"))
    (found,) = find_violations(state, CLUSTER)
    assert found.offenders == ("a", "b")


def test_groups_split_only_through_a_vm_that_is_down_are_one_violation() -> None:
    state = snapshot(
        *THREE_HOSTS,
        vm("a", "h1"),
        vm("b"),
        vm("c", "h2"),
        group("g1", TOGETHER, "a b"),
        group("g2", TOGETHER, "b c"),
    )
    (found,) = find_violations(state, CLUSTER)
    assert (found.groups, found.violated) == (("g1", "g2"), ())


def test_soft_positive_groups_stay_separate() -> None:
    state = snapshot(
        *THREE_HOSTS,
        vm("a", "h1"),
        vm("b"),
        vm("c", "h2"),
        group("g1", SOFT_TOGETHER, "a b"),
        group("g2", SOFT_TOGETHER, "b c"),
    )
    assert violated(state) == []


def test_hard_come_first_then_host_rules_then_priority() -> None:
    state = snapshot(
        *THREE_HOSTS,
        vm("a", "h1"),
        vm("b", "h1"),
        group("soft-low", SOFT_APART, "a b", priority=1),
        group("soft-high", SOFT_APART, "a b", priority=2),
        group("soft-host", vms="a", hosts_rule=SOFT_APART, hosts="h1", priority=0.1),
        group("hard", APART, "a b", priority=0.1),
        group("hard-host", vms="a", hosts_rule=TOGETHER, hosts="h2", priority=0.1),
    )
    assert [name for (name,) in violated(state)] == [
        "hard-host",
        "hard",
        "soft-host",
        "soft-high",
        "soft-low",
    ]


def test_member_on_a_host_that_is_not_up_counts_and_is_marked() -> None:
    state = snapshot(
        host("h1"),
        host("h2", status="non_responsive"),
        vm("a", "h1"),
        vm("b", "h2"),
        group("g", TOGETHER, "a b"),
    )
    (found,) = find_violations(state, CLUSTER)
    assert [(at.vm, at.host_up) for at in found.locations] == [("a", True), ("b", False)]


def test_legacy_label_is_a_hard_host_rule_and_ignored_without_hosts() -> None:
    old = cluster(compatibility="4.3")
    astray = snapshot(old, *THREE_HOSTS, vm("a", "h1"), label("l", "a", "h2", implicit=True))
    assert violated(astray) == [("l",)]
    assert violated(snapshot(old, *THREE_HOSTS, vm("a", "h1"), label("l", "a", implicit=True))) == []


def flagged_by_engine(state: Snapshot, one: AffinityGroup) -> bool:
    """The `broken` flag that the engine shows for a group, with members of the own cluster only."""
    labels = {found.id: found for found in state.affinity_labels}
    vms = set(one.vms).union(*(labels[name].vms for name in one.vm_labels))
    listed = set(one.hosts).union(*(labels[name].hosts for name in one.host_labels))
    running = [member.host for member in state.vms if member.id in vms and member.cluster == one.cluster]
    used = [place for place in running if place is not None]
    if one.vms_rule.enabled and one.vms_rule.positive and len(set(used)) > 1:
        return True
    if one.vms_rule.enabled and not one.vms_rule.positive and len(set(used)) < len(used):
        return True
    if one.hosts_rule.enabled and one.hosts_rule.positive and listed:
        return not set(used) <= listed
    return one.hosts_rule.enabled and not one.hosts_rule.positive and bool(set(used) & listed)


@given(snapshots())
def test_violated_groups_are_those_that_the_engine_flags(state: Snapshot) -> None:
    found = {name for violation in find_violations(state, CLUSTER) for name in violation.violated}
    flagged = {one.id for one in state.affinity_groups if flagged_by_engine(state, one)}
    assert found - {"lab1", "lab2"} == flagged


@given(snapshots())
def test_vm_whose_own_host_is_refused_belongs_to_a_violated_hard_rule(state: Snapshot) -> None:
    """Start and enforcement agree, in a cluster in which nothing moves."""
    settled = snapshot(
        *state.clusters, *state.hosts, *state.vms, *state.affinity_labels, *state.affinity_groups
    )
    hard = [violation for violation in find_violations(settled, CLUSTER) if violation.hard]
    concerned = {at.vm for violation in hard for at in violation.locations}
    for one in settled.vms:
        request = Request((one.id,), HOSTS)
        filters = (filter_by_vms, filter_by_hosts)
        verdicts = [verdict for judge in filters for verdict in judge(settled, request)]
        refused = any(verdict.host == one.host and not verdict.accepted for verdict in verdicts)
        assert not refused or one.id in concerned or is_label_without_hosts(settled, one.id)


def is_label_without_hosts(state: Snapshot, vm_id: str) -> bool:
    return any(one.implicit and vm_id in one.vms and not one.hosts for one in state.affinity_labels)
