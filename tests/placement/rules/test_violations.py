"""Constraints and violated groups of a cluster, against their invariants, the filters and the engine."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, AffinityRule, Snapshot
from ovirt_placement.rules import catalogue
from ovirt_placement.rules.affinity.constraints import Apart, OffHosts, OnHosts, Together
from ovirt_placement.rules.affinity.filters import filter_by_hosts, filter_by_vms
from ovirt_placement.rules.catalogue import Location, Violation, find_violations
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.rule import Constraint
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
from tests.placement.rules.strategies import HOSTS, VMS, hosts_of, members_of, snapshots

THREE_HOSTS = (host("h1"), host("h2"), host("h3"))


def violated(state: Snapshot) -> list[tuple[str, ...]]:
    return [violation.groups for violation in find_violations(state, CLUSTER)]


def test_a_vm_that_a_group_names_twice_is_one_member() -> None:
    apart = group("g", APART, "a b a", hosts_rule=TOGETHER, hosts="h1 h1 h3")
    state = snapshot(*THREE_HOSTS, vm("a", "h1"), vm("b", "h2"), apart)
    (found,) = find_violations(state, CLUSTER)
    assert (found.constraint.asks, found.offenders, len(found.locations)) == ("on its hosts", ("b",), 2)
    old = snapshot(
        cluster(compatibility="4.3"), *THREE_HOSTS, vm("a", "h1"), label("l", "a a", "h2", implicit=True)
    )
    assert [one.offenders for one in find_violations(old, CLUSTER)] == [("a",)]


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


def test_only_hard_groups_that_are_split_through_a_vm_that_is_down_are_one_violation() -> None:
    def found(rule: AffinityRule) -> list[tuple[object, object]]:
        groups = group("g1", rule, "a b"), group("g2", rule, "b c")
        state = snapshot(*THREE_HOSTS, vm("a", "h1"), vm("b"), vm("c", "h2"), *groups)
        return [(one.groups, one.violated) for one in find_violations(state, CLUSTER)]

    assert found(TOGETHER) == [(("g1", "g2"), ())]
    assert found(SOFT_TOGETHER) == []


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
    found = " ".join(name for (name,) in violated(state))
    assert found == "hard-host hard soft-host soft-high soft-low"


def test_member_on_a_host_that_is_not_up_counts_and_is_marked() -> None:
    hosts, vms = (host("h1"), host("h2", status="non_responsive")), (vm("a", "h1"), vm("b", "h2"))
    (found,) = find_violations(snapshot(*hosts, *vms, group("g", TOGETHER, "a b")), CLUSTER)
    assert [(at.vm, at.host_up) for at in found.locations] == [("a", True), ("b", False)]


def test_legacy_label_is_a_hard_host_rule_and_ignored_without_hosts() -> None:
    old = cluster(compatibility="4.3")
    astray = snapshot(old, *THREE_HOSTS, vm("a", "h1"), label("l", "a", "h2", implicit=True))
    assert violated(astray) == [("l",)]
    assert violated(snapshot(old, *THREE_HOSTS, vm("a", "h1"), label("l", "a", implicit=True))) == []


def flagged_by_engine(state: Snapshot, one: AffinityGroup) -> bool:
    """The `broken` flag that the engine shows for a group, with members of the own cluster only."""
    listed = hosts_of(state, one)
    running = [state.vm_by_id[name].host for name in members_of(state, one)]
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


def kept(state: Snapshot, constraint: Constraint) -> bool:
    """The invariants, as their files state them."""
    hosts = [one.host for one in state.vms if one.id in constraint.vms and one.host is not None]
    if isinstance(constraint, Together):
        return len(set(hosts)) <= 1
    if isinstance(constraint, Apart):
        return len(set(hosts)) == len(hosts)
    assert isinstance(constraint, OnHosts)
    wanted = isinstance(constraint, OffHosts)
    return all((host in constraint.hosts) is not wanted for host in hosts)


@given(snapshots())
def test_a_constraint_is_kept_violated_and_short_of_moves_all_at_once(state: Snapshot) -> None:
    placement = SnapshotPlacement(state)
    for constraint in catalogue.constraints(state, CLUSTER):
        right = kept(state, constraint)
        assert constraint.keeps(placement) is right
        assert (constraint.surplus(placement) == 0) is right
        assert (not constraint.offenders(placement)) is right
        assert constraint.surplus(placement) <= len(constraint.offenders(placement))


@given(snapshots(), st.sampled_from(VMS))
def test_hard_constraints_admit_what_the_filters_accept(state: Snapshot, vm: str) -> None:
    placement = SnapshotPlacement(state)
    hard = [one for one in catalogue.constraints(state, CLUSTER) if one.hard and vm in one.vms]
    request = Request((vm,), HOSTS)
    accepted = {host for host in HOSTS if all(one.admits(vm, host, placement) for one in hard)}
    by_filters = {verdict.host for verdict in filter_by_vms(state, request) if verdict.accepted}
    by_filters &= {verdict.host for verdict in filter_by_hosts(state, request) if verdict.accepted}
    shut_out = any(one.implicit and vm in one.vms and not one.hosts for one in state.affinity_labels)
    assert by_filters == (accepted if not shut_out or by_filters else set())


@given(snapshots(), st.sampled_from(VMS), st.sampled_from(HOSTS))
def test_an_admitted_move_never_makes_more_moves_necessary(state: Snapshot, vm: str, host: str) -> None:
    """But for positive groups, of which a split one may be joined on any of its hosts."""
    before = SnapshotPlacement(state)
    for constraint in catalogue.constraints(state, CLUSTER):
        if vm not in constraint.vms or isinstance(constraint, Together):
            continue
        if constraint.admits(vm, host, before) and before.runs_on(vm) is not None:
            moved = _moved(state, vm, host)
            assert constraint.surplus(SnapshotPlacement(moved)) <= constraint.surplus(before)


def _moved(state: Snapshot, vm: str, host: str) -> Snapshot:
    return replace(state, vms=tuple(replace(one, host=host) if one.id == vm else one for one in state.vms))
