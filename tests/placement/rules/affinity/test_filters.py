"""The hard filters of affinity groups: their choices one by one, then all against brute-force oracles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import AffinityRule, Snapshot
from ovirt_placement.rules.affinity import filters
from ovirt_placement.rules.affinity.filters import filter_by_hosts, filter_by_vms
from ovirt_placement.rules.elements.verdict import Reason, Request, Verdict
from tests.builders import APART, TOGETHER, Part, cluster, group, host, label, pending, snapshot, vm
from tests.placement.rules.strategies import HOSTS, VMS, hosts_of, members_of, snapshots

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
            (vm("peer", "h2"), group("g", TOGETHER, "new peer")),
            "new",
            "h2",
            {"h1": (ELSEWHERE,), "h2": (JOINS,)},
            id="a positive peer draws to its host",
        ),
        pytest.param(
            (vm("peer", "h2"), group("g", APART, "new peer")),
            "new",
            "h1 h3",
            {"h1": (), "h2": (RIVAL,)},
            id="a negative peer keeps away from its host",
        ),
        pytest.param(
            (
                vm("friend", "h1"),
                vm("foe", "h2"),
                group("together", TOGETHER, "new friend"),
                group("apart", APART, "new foe"),
            ),
            "new",
            "h1",
            {"h2": (FOE, FRIEND)},
            id="a host that fails twice says both",
        ),
        pytest.param(
            (
                vm("down"),
                vm("peer", "h2"),
                group("g1", TOGETHER, "new down"),
                group("g", TOGETHER, "down peer"),
            ),
            "new",
            "h2",
            {"h2": (JOINS,)},
            id="a unified group counts through a VM that is down",
        ),
        pytest.param(
            (vm("peer", "h1", status="migrating"), group("g", APART, "new peer")),
            "new",
            "h2 h3",
            {"h2": (UNKNOWN,), "h3": (UNKNOWN,)},
            id="an unknown target blocks the source only",
        ),
        pytest.param(
            (vm("b"), group("g", APART, "new b")),
            "new b",
            "",
            dict.fromkeys(("h1", "h2", "h3"), (MUST_PART,)),
            id="VMs of one request that must part get no host",
        ),
        pytest.param(
            (vm("peer", "h2"), group("g", TOGETHER, "new peer")), "x", "h1 h2 h3", {}, id="an unknown VM"
        ),
        pytest.param(
            (vm("peer", "h2"), group("g", DISABLED, "new peer")), "new", "h1 h2 h3", {}, id="a disabled rule"
        ),
    ],
)
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
    assert [filter_by_vms(state, asked)[0].accepted for state in (runs, starts, goes)] == [True, False, False]


NOT_LISTED = Reason(filters.HOST_NOT_LISTED, "g", "new")
FORBIDDEN = Reason(filters.HOST_FORBIDDEN, "g", "new")
NO_HOSTS = Reason(filters.GROUP_WITHOUT_HOSTS, "g", "new")
LABEL = label("g", "new", "h2", implicit=True)


@pytest.mark.parametrize(
    ("parts", "hosts", "said"),
    [
        pytest.param(
            (vm("new", "h3"), group("g", vms="new", hosts_rule=TOGETHER, hosts="h1 h2")),
            "h1 h2",
            {"h3": (NOT_LISTED,)},
            id="a positive group admits its hosts only, wherever the VM runs",
        ),
        pytest.param(
            (vm("new"), group("g", vms="new", hosts_rule=APART, hosts="h1")),
            "h2 h3",
            {"h1": (FORBIDDEN,)},
            id="a negative group keeps off its hosts",
        ),
        pytest.param(
            (vm("new"), group("g", vms="new", hosts_rule=TOGETHER)),
            "h1 h2 h3",
            dict.fromkeys(("h1", "h2", "h3"), (NO_HOSTS,)),
            id="a group without hosts is not configured, and every verdict says so",
        ),
        pytest.param(
            (OLD, vm("new"), LABEL), "h2", {"h1": (NOT_LISTED,)}, id="a legacy label restricts below 4.4"
        ),
        pytest.param(
            (cluster(compatibility="4.4"), vm("new"), LABEL), "h1 h2 h3", {"h1": ()}, id="and no more in 4.4"
        ),
    ],
)
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
