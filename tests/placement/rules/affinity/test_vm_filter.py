"""The hard VM-to-VM filter: its choices one by one, then all together against a brute-force oracle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import AffinityGroup, AffinityRule, Snapshot
from ovirt_placement.rules.affinity.filters import (
    MIGRATION_TARGET_UNKNOWN,
    NEGATIVE_PEER_HERE,
    POSITIVE_PEER_ELSEWHERE,
    POSITIVE_PEER_HERE,
    POSITIVE_PEERS_SPLIT,
    REQUEST_MUST_PART,
    filter_by_vms,
)
from ovirt_placement.rules.elements.verdict import Reason, Request, Verdict
from tests.builders import (
    APART,
    TOGETHER,
    group,
    host,
    pending,
    snapshot,
    vm,
)
from tests.placement.rules.strategies import HOSTS, VMS, snapshots

THREE_HOSTS = (host("h1"), host("h2"), host("h3"))


def judge(state: Snapshot, vms: str, candidates: str = "h1 h2 h3") -> dict[str, Verdict]:
    request = Request(tuple(vms.split()), tuple(candidates.split()))
    return {verdict.host: verdict for verdict in filter_by_vms(state, request)}


def accepted(state: Snapshot, vms: str, candidates: str = "h1 h2 h3") -> str:
    return " ".join(host for host, verdict in judge(state, vms, candidates).items() if verdict.accepted)


def test_positive_peer_draws_to_its_host() -> None:
    state = snapshot(*THREE_HOSTS, vm("new"), vm("peer", "h2"), group("g", TOGETHER, "new peer"))
    verdicts = judge(state, "new")
    assert [host for host in verdicts if verdicts[host].accepted] == ["h2"]
    assert verdicts["h2"].reasons == (Reason(POSITIVE_PEER_HERE, "g", "peer", "h2"),)
    assert verdicts["h1"].reasons == (Reason(POSITIVE_PEER_ELSEWHERE, "g", "peer", "h2"),)


def test_negative_peer_keeps_away_from_its_host() -> None:
    state = snapshot(*THREE_HOSTS, vm("new"), vm("peer", "h2"), group("g", APART, "new peer"))
    verdicts = judge(state, "new")
    assert [host for host in verdicts if verdicts[host].accepted] == ["h1", "h3"]
    assert verdicts["h2"].reasons == (Reason(NEGATIVE_PEER_HERE, "g", "peer", "h2"),)
    assert verdicts["h1"].reasons == ()


def test_host_that_fails_twice_says_both() -> None:
    state = snapshot(
        *THREE_HOSTS,
        vm("new"),
        vm("friend", "h1"),
        vm("foe", "h2"),
        group("together", TOGETHER, "new friend"),
        group("apart", APART, "new foe"),
    )
    assert judge(state, "new")["h2"].reasons == (
        Reason(NEGATIVE_PEER_HERE, "apart", "foe", "h2"),
        Reason(POSITIVE_PEER_ELSEWHERE, "together", "friend", "h1"),
    )


def test_unified_group_counts_through_a_vm_that_is_down() -> None:
    state = snapshot(
        *THREE_HOSTS,
        vm("new"),
        vm("down"),
        vm("far", "h2"),
        group("g1", TOGETHER, "new down"),
        group("g2", TOGETHER, "down far"),
    )
    verdicts = judge(state, "new")
    assert verdicts["h2"].reasons == (Reason(POSITIVE_PEER_HERE, "g2", "far", "h2"),)
    assert not verdicts["h1"].accepted


def test_split_group_admits_each_of_its_hosts_and_says_that_it_stays_split() -> None:
    state = snapshot(
        *THREE_HOSTS, vm("new"), vm("p1", "h1"), vm("p2", "h2"), group("g", TOGETHER, "new p1 p2")
    )
    verdicts = judge(state, "new")
    assert accepted(state, "new") == "h1 h2"
    assert Reason(POSITIVE_PEERS_SPLIT, "g", "p2", "h2") in verdicts["h1"].reasons
    assert len(verdicts["h3"].reasons) == 2


def test_unknown_migration_target_blocks_the_source_only_and_every_verdict_says_so() -> None:
    state = snapshot(
        *THREE_HOSTS, vm("new"), vm("peer", "h1", status="migrating"), group("g", APART, "new peer")
    )
    verdicts = judge(state, "new")
    assert accepted(state, "new") == "h2 h3"
    for verdict in verdicts.values():
        assert Reason(MIGRATION_TARGET_UNKNOWN, "g", "peer", "h1") in verdict.reasons


def test_vms_of_one_request_that_must_part_get_no_host() -> None:
    state = snapshot(*THREE_HOSTS, vm("a"), vm("b"), group("g", APART, "a b"))
    verdicts = judge(state, "a b")
    assert {verdict.reasons for verdict in verdicts.values()} == {(Reason(REQUEST_MUST_PART, "g", "a"),)}
    assert accepted(state, "a b") == ""


def test_ignoring_hard_affinity_admits_all() -> None:
    state = snapshot(*THREE_HOSTS, vm("new"), vm("peer", "h2"), group("g", TOGETHER, "new peer"))
    verdicts = filter_by_vms(state, Request(("new",), ("h1", "h2"), ignore_hard_vm_affinity=True))
    assert all(verdict.accepted for verdict in verdicts)


def test_unknown_vm_and_unknown_host_are_judged_by_what_is_known() -> None:
    state = snapshot(*THREE_HOSTS, vm("new"), vm("peer", "h2"), group("g", TOGETHER, "new peer"))
    assert accepted(state, "stranger") == "h1 h2 h3"
    assert accepted(state, "new", "h9") == ""


def test_enforcing_flag_of_a_disabled_rule_means_nothing() -> None:
    disabled = AffinityRule(enabled=False, positive=True, enforcing=True)
    state = snapshot(*THREE_HOSTS, vm("new"), vm("peer", "h2"), group("g", disabled, "new peer"))
    assert accepted(state, "new") == "h1 h2 h3"


def admitted_by_definition(state: Snapshot, vms: set[str], candidate: str) -> bool:
    """The rule in the words of its definition, host by host, without any index."""
    groups = [
        (one.vms_rule.positive, own_members(state, one))
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


def own_members(state: Snapshot, one: AffinityGroup) -> set[str]:
    labelled = {vm for found in state.affinity_labels if found.id in one.vm_labels for vm in found.vms}
    return {member.id for member in state.vms if member.id in labelled | set(one.vms)} & {
        member.id for member in state.vms if member.cluster == one.cluster
    }


@given(snapshots(most_groups=4), st.sets(st.sampled_from(VMS), min_size=1, max_size=2))
def test_filter_is_its_definition(state: Snapshot, vms: set[str]) -> None:
    verdicts = filter_by_vms(state, Request(tuple(sorted(vms)), HOSTS))
    assert [verdict.host for verdict in verdicts] == list(HOSTS)
    for verdict in verdicts:
        assert verdict.accepted == admitted_by_definition(state, vms, verdict.host)


@given(snapshots(most_groups=4), st.sampled_from(VMS))
def test_rejection_has_a_veto_and_acceptance_none(state: Snapshot, vm_id: str) -> None:
    for verdict in filter_by_vms(state, Request((vm_id,), HOSTS)):
        assert verdict.accepted == (not any(reason.kind.veto for reason in verdict.reasons))


def test_a_vm_leaves_its_host_with_peers_that_run_there_and_not_while_one_starts_there() -> None:
    """What only starts is not taken along, and holds those that run."""
    hosts, asked = (host("h1"), host("h2")), Request(("a",), ("h2",), as_engine=True)
    together = group("g", TOGETHER, "a b")
    runs = snapshot(*hosts, vm("a", "h1"), vm("b", "h1"), together)
    starts = snapshot(*hosts, vm("a", "h1"), vm("b"), together, pending("b", "h1"))
    goes = snapshot(*hosts, vm("a", "h1"), vm("b", "h2"), together, pending("b", "h1"))
    assert [filter_by_vms(state, asked)[0].accepted for state in (runs, starts, goes)] == [True, False, False]
