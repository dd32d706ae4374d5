"""Hard filters of affinity groups, and violated ones: choice by choice, then against brute-force oracles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, AffinityRule, Snapshot
from ovirt_placement.rules import catalogue
from ovirt_placement.rules.affinity import filters
from ovirt_placement.rules.affinity.constraints import Apart, OffHosts, OnHosts, Together
from ovirt_placement.rules.affinity.filters import filter_by_hosts, filter_by_vms
from ovirt_placement.rules.catalogue import Location, Violation, find_violations
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.rule import Constraint
from ovirt_placement.rules.elements.verdict import Reason, Request, Verdict
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    Part,
    cluster,
    group,
    host,
    label,
    pending,
    snapshot,
    vm,
)
from tests.placement.rules.strategies import HOSTS, VMS, hosts_of, is_violated, members_of, snapshots

THREE_HOSTS = (host("h1"), host("h2"), host("h3"))
OLD = cluster(compatibility="4.3")
DISABLED = AffinityRule(enabled=False, positive=True, enforcing=True)
#: What is said of each host, which is refused where any of that is a veto.
Said = dict[str, tuple[Reason, ...]]


def judge(state: Snapshot, vms: str = "new", hosts: str = "h1 h2 h3") -> dict[str, Verdict]:
    request = Request(tuple(vms.split()), tuple(hosts.split()))
    return {verdict.host: verdict for verdict in filter_by_vms(state, request)}


def accepted(verdicts: dict[str, Verdict]) -> str:
    return " ".join(host for host, verdict in verdicts.items() if verdict.accepted)


JOINS = Reason(filters.POSITIVE_PEER_HERE, "g", "peer", "h2")
ELSEWHERE = Reason(filters.POSITIVE_PEER_ELSEWHERE, "g", "peer", "h2")
RIVAL = Reason(filters.NEGATIVE_PEER_HERE, "g", "peer", "h2")
FOE = Reason(filters.NEGATIVE_PEER_HERE, "apart", "foe", "h2")
FRIEND = Reason(filters.POSITIVE_PEER_ELSEWHERE, "together", "friend", "h1")
UNKNOWN = Reason(filters.MIGRATION_TARGET_UNKNOWN, "g", "peer", "h1")
MUST_PART = Reason(filters.REQUEST_MUST_PART, "g", "new")


@pytest.mark.parametrize(
    ("parts", "vms", "hosts", "said"),
    [
        pytest.param(
            (vm("peer", "h2"), group("g", TOGETHER, "new peer")), "new", "h2",
            {"h1": (ELSEWHERE,), "h2": (JOINS,)}, id="a positive peer draws to its host",
        ),
        pytest.param(
            (vm("peer", "h2"), group("g", APART, "new peer")), "new", "h1 h3", {"h1": (), "h2": (RIVAL,)},
            id="a negative peer keeps away from its host",
        ),
        pytest.param(
            (
                vm("friend", "h1"), vm("foe", "h2"), group("together", TOGETHER, "new friend"),
                group("apart", APART, "new foe"),
            ),
            "new", "h1", {"h2": (FOE, FRIEND)}, id="a host that fails twice says both",
        ),
        pytest.param(
            (
                vm("peer", "h2"), vm("friend", "h2"), group("g", TOGETHER, "new peer friend"),
                group("other", TOGETHER, "new peer"),
            ),
            "new", "h2", {"h1": (ELSEWHERE, replace(ELSEWHERE, group="other"))},
            id="each group that draws elsewhere is named once",
        ),
        pytest.param(
            (
                vm("down"), vm("peer", "h2"), group("alone", TOGETHER, "peer"),
                group("g1", TOGETHER, "new down"), group("g", TOGETHER, "down peer"),
            ),
            "new", "h2", {"h2": (JOINS,)}, id="a unified group counts through a VM that is down",
        ),
        pytest.param(
            (vm("peer", "h1", status="migrating"), group("g", APART, "new peer")), "new", "h2 h3",
            {"h2": (UNKNOWN,), "h3": (UNKNOWN,)}, id="an unknown target blocks the source only",
        ),
        pytest.param(
            (vm("b"), group("g", APART, "new b")), "new b", "",
            dict.fromkeys(("h1", "h2", "h3"), (MUST_PART,)),
            id="VMs of one request that must part get no host",
        ),
        pytest.param(
            (vm("peer", "h2"), group("g", TOGETHER, "new peer")), "x", "h1 h2 h3", {}, id="an unknown VM",
        ),
        pytest.param(
            (vm("peer", "h2"), group("g", DISABLED, "new peer")), "new", "h1 h2 h3", {}, id="a disabled rule",
        ),
    ],
)  # fmt: skip
def test_each_choice_between_vms(parts: tuple[Part, ...], vms: str, hosts: str, said: Said) -> None:
    verdicts = judge(snapshot(*THREE_HOSTS, vm("new"), *parts), vms)
    assert accepted(verdicts) == hosts
    assert {name: verdicts[name].reasons for name in said} == said


def test_split_group_admits_each_of_its_hosts_and_says_that_it_stays_split() -> None:
    verdicts = judge(
        snapshot(*THREE_HOSTS, vm("new"), vm("p1", "h1"), vm("p2", "h2"), group("g", TOGETHER, "new p1 p2"))
    )
    assert accepted(verdicts) == "h1 h2"
    assert Reason(filters.POSITIVE_PEERS_SPLIT, "g", "p2", "h2") in verdicts["h1"].reasons
    assert len(verdicts["h3"].reasons) == 2


def test_an_unknown_host_is_none_of_a_peer() -> None:
    state = snapshot(*THREE_HOSTS, vm("new"), vm("peer", "h2"), group("g", TOGETHER, "new peer"))
    assert accepted(judge(state, hosts="h9")) == ""


def admitted_between_vms(state: Snapshot, vms: set[str], candidate: str) -> bool:
    """The rule in the words of its definition, host by host, without any index."""
    groups = [
        (one.vms_rule.positive, members_of(state, one))
        for one in state.affinity_groups
        if one.vms_rule.enabled and one.vms_rule.enforcing
    ]
    present = {one.id: {one.host} - {None} for one in state.vms}
    targets = {one.id: {entry.host for entry in state.pending if entry.vm == one.id} for one in state.vms}
    tied = set(vms)
    for _ in groups:
        tied |= {peer for positive, own in groups if positive and own & tied for peer in own}
    gathered = {place for peer in tied - vms for place in targets[peer] or present[peer]}
    foes = {peer for positive, own in groups if not positive and own & vms for peer in own - vms}
    taken = {place for foe in foes for place in targets[foe] | present[foe]}
    must_part = any(len(own & vms) > 1 for positive, own in groups if not positive)
    return not must_part and candidate not in taken and (not gathered or candidate in gathered)


@given(snapshots(most_groups=4), st.sets(st.sampled_from(VMS), min_size=1, max_size=2))
def test_the_filter_between_vms_is_its_definition(state: Snapshot, vms: set[str]) -> None:
    verdicts = filter_by_vms(state, Request(tuple(sorted(vms)), HOSTS))
    assert [verdict.host for verdict in verdicts] == list(HOSTS)
    for verdict in verdicts:
        assert verdict.accepted == admitted_between_vms(state, vms, verdict.host)
        assert verdict.accepted == (not any(reason.kind.veto for reason in verdict.reasons))


def test_a_vm_leaves_its_host_with_peers_that_run_there_and_not_while_one_starts_there() -> None:
    """What only starts is not taken along, and holds those that run."""
    hosts, asked = (host("h1"), host("h2")), Request(("a",), ("h2",), as_engine=True)
    together = group("g", TOGETHER, "a b")
    runs = snapshot(*hosts, vm("a", "h1"), vm("b", "h1"), together)
    starts = snapshot(*hosts, vm("a", "h1"), vm("b"), together, pending("b", "h1"))
    goes = snapshot(*hosts, vm("a", "h1"), vm("b", "h2"), together, pending("b", "h1"))
    leaves = snapshot(*hosts, host("h3"), vm("a", "h1"), vm("b", "h1"), together, pending("b", "h3"))
    found = [filter_by_vms(state, asked)[0].accepted for state in (runs, starts, goes, leaves)]
    assert found == [True, False, False, False]


NOT_LISTED = Reason(filters.HOST_NOT_LISTED, "g", "new")
FORBIDDEN = Reason(filters.HOST_FORBIDDEN, "g", "new")
NO_HOSTS = Reason(filters.GROUP_WITHOUT_HOSTS, "g", "new")
LABEL = label("g", "new", "h2", implicit=True)


@pytest.mark.parametrize(
    ("parts", "hosts", "said"),
    [
        pytest.param(
            (vm("new", "h3"), group("g", vms="new", hosts_rule=TOGETHER, hosts="h1 h2")), "h1 h2",
            {"h3": (NOT_LISTED,)}, id="a positive group admits its hosts only, wherever the VM runs",
        ),
        pytest.param(
            (vm("new"), group("g", vms="new", hosts_rule=APART, hosts="h1")), "h2 h3", {"h1": (FORBIDDEN,)},
            id="a negative group keeps off its hosts",
        ),
        pytest.param(
            (vm("new"), group("g", vms="new", hosts_rule=TOGETHER)), "h1 h2 h3",
            dict.fromkeys(("h1", "h2", "h3"), (NO_HOSTS,)),
            id="a group without hosts is not configured, and every verdict says so",
        ),
        pytest.param(
            (OLD, vm("new"), LABEL), "h2", {"h1": (NOT_LISTED,)}, id="a legacy label restricts below 4.4",
        ),
        pytest.param(
            (cluster(compatibility="4.4"), vm("new"), LABEL), "h1 h2 h3", {"h1": ()}, id="and no more in 4.4",
        ),
    ],
)  # fmt: skip
def test_each_choice_of_hosts(parts: tuple[Part, ...], hosts: str, said: Said) -> None:
    found = filter_by_hosts(snapshot(*THREE_HOSTS, *parts), Request(("new",), ("h1", "h2", "h3")))
    verdicts = {verdict.host: verdict for verdict in found}
    assert accepted(verdicts) == hosts
    assert {name: verdicts[name].reasons for name in said} == said


def admitted_on_hosts(state: Snapshot, vm_id: str, candidate: str) -> bool:
    """The rule in the words of its definition, without any index; the cluster of the VMs is the first."""
    rules = [
        (one.hosts_rule.positive, listed)
        for one in state.affinity_groups
        if (listed := hosts_of(state, one)) and vm_id in members_of(state, one) and one.hosts_rule.hard
    ]
    if state.clusters[0].compatibility == "4.3":
        rules += [(True, {*one.hosts}) for one in state.affinity_labels if one.implicit and vm_id in one.vms]
    return all((candidate in listed) == positive for positive, listed in rules)


@given(snapshots(), st.sets(st.sampled_from(VMS), min_size=1, max_size=3))
def test_the_filter_of_hosts_is_its_definition_for_each_vm(state: Snapshot, vms: set[str]) -> None:
    for verdict in filter_by_hosts(state, Request(tuple(vms), HOSTS)):
        assert verdict.accepted == all(admitted_on_hosts(state, vm_id, verdict.host) for vm_id in vms)


# -- Constraints and violated groups of a cluster, against their invariants, the filters and the engine.
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


def test_split_positive_group_names_who_is_where_up_or_not_and_the_minority() -> None:
    state = snapshot(
        host("h1"), host("h2", status="non_responsive"), vm("a", "h1"), vm("b", "h2"), vm("c", "h2"), vm("d"),
        group("g", TOGETHER, "a b c d", priority=3.0),
    )  # fmt: skip
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
                Location("b", "h2", host_up=False),
                Location("c", "h2", host_up=False),
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
        *THREE_HOSTS, vm("a", "h1"), vm("b", "h1"), group("soft-low", SOFT_APART, "a b", priority=1),
        group("soft-high", SOFT_APART, "a b", priority=2),
        group("soft-host", vms="a", hosts_rule=SOFT_APART, hosts="h1", priority=0.1),
        group("hard", APART, "a b", priority=0.1),
        group("hard-host", vms="a", hosts_rule=TOGETHER, hosts="h2", priority=0.1),
    )  # fmt: skip
    found = " ".join(name for (name,) in violated(state))
    assert found == "hard-host hard soft-host soft-high soft-low"


def test_legacy_label_is_a_hard_host_rule_and_ignored_without_hosts() -> None:
    old = cluster(compatibility="4.3")
    astray = snapshot(old, *THREE_HOSTS, vm("a", "h1"), label("l", "a", "h2", implicit=True))
    assert violated(astray) == [("l",)]
    assert violated(snapshot(old, *THREE_HOSTS, vm("a", "h1"), label("l", "a", implicit=True))) == []


def flagged_by_engine(state: Snapshot, one: AffinityGroup) -> bool:
    """With members of the own cluster only."""
    running = [place for name in members_of(state, one) if (place := state.vm_by_id[name].host) is not None]
    return is_violated(one, running, hosts_of(state, one))


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
    return all((host in constraint.form.hosts) is not wanted for host in hosts)


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
